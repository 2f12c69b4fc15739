// Package check holds the checkers of the rules that a simulated ensemble must keep: towards
// itself (one leader in an epoch, one committed history, logs without holes, nothing
// acknowledged before it is durable, equal trees), and towards its clients and their
// recipes (each request at most once, answers and events in order, no more holders of a
// claim than allowed). If ZooKeeper's TLA+ specification has a rule, its checker has the
// name from there.
//
// A checker gets observations, which are values, and says what is wrong. It knows neither the
// simulator nor the servers and clients, so it cannot depend on their internals. The observations
// of servers are in observed.go, those of clients in observedclients.go. A checker asks [Present]
// for what is true at the moment of an observation, such as who holds a lock then. Present also
// returns values. [History] is the committed history, with which several checkers compare.
//
// [Protocol] returns the checkers of servers, and [Clients] those of clients. [Registers]
// checks linearizability after a run. [Premises] counts how often each rule could have been broken. Read observed.go first.
package check
