"""What can be asked of Perennial, whoever asks: errors, records and the protocol."""
