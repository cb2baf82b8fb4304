"""Data and Protocols that every other part of Lodger agrees on; standard library only."""
