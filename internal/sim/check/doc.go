// Package check holds the checkers of the rules that servers must keep together: one leader
// in an epoch, one committed history, logs without holes, nothing acknowledged before it is
// durable, equal trees. If ZooKeeper's TLA+ specification has a rule, its checker has the
// name from there.
//
// A checker gets observations, which are values, and says what is wrong. It knows neither
// the simulator nor the servers, so it cannot depend on their internals. [History] is the
// committed history, with which several checkers compare.
//
// The checkers of the rules for clients and recipes are in the simulator itself, because
// they need to know what each client has requested and still holds. Read observed.go first.
package check
