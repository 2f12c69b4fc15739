package client

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// World is what clients see of the simulation. All times are simulated µs.
type World interface {
	Now() int64
	// After runs do after d µs.
	After(d int64, do func())
	// Random returns the random source for everything that does not belong to a single client.
	Random() *machine.Random
	Settings() Settings
	Phase() Phase

	// Servers returns how many servers there are, including retired ones. Their ids begin
	// with 1.
	Servers() int
	// Listed reports whether the newest list of servers has the server.
	Listed(ensemble.ServerID) bool
	// Behind returns a server that has applied everything before a transaction, but not the transaction; 0: there is none.
	Behind(seen wire.Zxid) ensemble.ServerID
	// HasLeader reports whether there is an established leader.
	HasLeader() bool
	// Reaches reports whether a host can exchange packets with a server's machine.
	Reaches(from *machine.Host, to ensemble.ServerID) bool
	// RoundTrip draws how long the setup of a connection takes.
	RoundTrip(from *machine.Host, to ensemble.ServerID) int64
	// Connect connects a host to a server. Each message of the server is passed to take, and
	// gone is called when the connection has ended. Connect returns nil if the server's
	// process does not run.
	Connect(from *machine.Host, to ensemble.ServerID, take func(message any), gone func()) Connection

	// History returns the committed history.
	History() *check.History
	// See shows an observation to the checkers.
	See(observation any)
	// Fail ends the run and reports that a rule was broken.
	Fail(rule, format string, args ...any)
	// Tell adds a line to the trace. Detail adds a line that only a detailed trace contains,
	// if Detailed is true.
	Tell(format string, args ...any)
	Detail(format string, args ...any)
	Detailed() bool
	// Reach counts one occurrence of a situation.
	Reach(Situation)
	// Kill and Hang are faults of a client, which a scenario has planned.
	Kill(client int)
	Hang(client int)
}

// Connection is a client's end of a connection to a server.
type Connection interface {
	Send(message any)
	// Close ends the connection. What was sent still arrives.
	Close()
	// Vanish ends the connection without a word, as a machine does that loses power. It
	// reports whether the connection was open.
	Vanish() bool
}

// Settings are those options of a run that concern clients.
type Settings struct {
	Recipe          Recipe
	Leases          int
	TermMS          int64
	TickMS, ThinkMS int64
	SessionMS       int32 // the session timeout to ask for
	LocalSessions   bool
	Careless        bool // clients do what careless.go says
}

// Phase is the part of a run.
type Phase struct {
	Calm  bool // the faults have ended
	Quiet bool // clients send no further requests
	Idle  bool // only clients with a part in a recipe send requests, so that sessions expire even if terms are short
}

// Situation is something that a good set of seeds must bring about for clients.
type Situation int

// The situations of clients.
const (
	Resumed          Situation = iota // a session is resumed
	Moved                             // a session moves to another server
	MovedLeaderless                   // a session moves; its client connected while there was no leader
	ReadOnly                          // a client is connected to a server without a quorum
	WatchesAgain                      // a client sets its watches again on another connection
	TreeAgain                         // a client sets the watch of a tree again
	Since                             // a cache asks what has changed
	HolderStopped                     // the holder of a claim is stopped
	HalfOpen                          // a client vanishes, and its connection stays
	ClientSlept                       // a suspended client goes on
	ClientClockBack                   // a client's wall clock goes back
	ClientClockAhead                  // a client's wall clock is set forward by an hour or more
	ClientJumped                      // a client's monotonic clock jumps
)
