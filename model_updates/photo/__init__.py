"""`perennial-photo`: an encoder for photographs out of two small packages of pretrained weights."""
