// Package machine holds what every simulated machine has, that of a server and that of a
// client: a place in the network, power, clocks that drift and stand still ([Host], [Clock]).
// It also holds [Random], the random numbers that a seed decides, and the units of simulated
// time.
package machine
