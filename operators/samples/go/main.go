package main

// Counts what has come, and says how much that is with every event.
func main() {
	Serve(func(event Event, state *State) ([]Update, error) {
		count := 1 + state.Number("count")
		state.Put("count", count)
		return []Update{{Channels: map[string]any{"count": count}}}, nil
	})
}
