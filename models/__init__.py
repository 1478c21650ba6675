"""Models: the protocol, the back ends, and the policies that wrap them."""
