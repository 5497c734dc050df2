"""What a picture's own file says of it: when, where and with what it was taken, and what people wrote into it."""
