"""Lets payments through that look like fraud: far above what its card has paid until now."""

from servioticy_operator import serve


def fraud(event, state):
    """Compare a payment with the mean and the deviation of those before (Welford's method)."""
    amount = event.value("amount", 0.0)
    count, mean, squares = state.get("seen", [0, 0.0, 0.0])
    deviation = (squares / count) ** 0.5 if count else 0.0
    is_suspect = count >= 3 and amount > mean + 4 * max(deviation, 1.0)

    count += 1
    further = (amount - mean) / count
    squares += (amount - mean) * (amount - mean - further)
    state.put("seen", [count, mean + further, squares])
    if is_suspect:
        yield {"amount": amount, "usual": mean}


serve(fraud)
