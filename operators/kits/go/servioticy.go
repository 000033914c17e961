// The kit for operators in Go: events in, updates out.
//
//	func main() {
//		Serve(func(event Event, state *State) ([]Update, error) {
//			state.Put("count", 1+state.Number("count"))
//			return []Update{{Channels: map[string]any{"alarms": state.Get("count")}}}, nil
//		})
//	}
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"strconv"
)

// Event is an update that has come.
type Event struct {
	Composite, Stream    string
	Timestamp            int64
	Channels             object
	Version, Correlation any
}

// Update is made of an event: at its time, and of its composite, unless it says otherwise.
type Update struct {
	Timestamp *int64
	Channels  map[string]any
	Stream    string
}

// State is what the composite keeps: at most 64 KiB of JSON, committed with the batch or not at all.
type State struct {
	values  map[string]any
	changed bool
}

func (s *State) Get(key string) any        { return s.values[key] }
func (s *State) Number(key string) float64 { n, _ := s.values[key].(float64); return n }
func (s *State) Put(key string, value any) { s.values[key], s.changed = value, true }
func (s *State) Drop(key string)           { delete(s.values, key); s.changed = true }

type object = map[string]any
type question struct {
	ID, Composite string
	State         map[string]any
	Events        []Event
}

// Serve answers until the platform ends us. What each returns as an error is its question's.
func Serve(each func(Event, *State) ([]Update, error)) {
	number, _ := strconv.Atoi(os.Getenv("SERVIOTICY_OPERATOR"))
	socket := os.NewFile(uintptr(number), "platform")
	send(socket, object{"ready": true})
	for in := bufio.NewReader(socket); ; {
		var length uint32
		if binary.Read(in, binary.BigEndian, &length) != nil {
			return
		}
		body, asked := make([]byte, length), struct{ Questions []question }{}
		if _, err := io.ReadFull(in, body); err != nil || json.Unmarshal(body, &asked) != nil {
			return
		}
		replies := make([]object, 0, len(asked.Questions))
		for _, one := range asked.Questions {
			replies = append(replies, reply(one, each))
		}
		send(socket, object{"replies": replies})
	}
}

func reply(one question, each func(Event, *State) ([]Update, error)) object {
	outputs, state := []object{}, &State{values: one.State}
	if state.values == nil {
		state.values = object{}
	}
	for number, event := range one.Events {
		event.Composite = one.Composite
		made, err := each(event, state)
		if err != nil {
			return object{"id": one.ID, "error": err.Error()}
		}
		for _, update := range made {
			outputs = append(outputs, object{"event": number, "timestamp": update.Timestamp, "channels": update.Channels, "stream": update.Stream})
		}
	}
	if state.changed {
		return object{"id": one.ID, "outputs": outputs, "state": state.values}
	}
	return object{"id": one.ID, "outputs": outputs}
}

func send(socket *os.File, message object) {
	body, _ := json.Marshal(message)
	socket.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
}
