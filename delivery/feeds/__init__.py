"""What durable subscriptions still have to get: one model under every way of delivering it."""
