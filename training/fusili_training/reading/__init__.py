"""Reading notes: engraved staves with the pitch of every head, and a network that learns to read them."""
