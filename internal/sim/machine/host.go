package machine

// Host is a machine: a place in the network, a clock, and power.
type Host struct {
	Name  string
	Place int // its index in the tables of the network
	On    bool
	Clock Clock
}
