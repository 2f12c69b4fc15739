// Package check holds the checkers of what servers promise each other: one leader in an
// epoch, one committed history, logs without holes, nothing acknowledged before it is
// durable, equal trees. Their names are those of ZooKeeper's TLA+ specification where it
// has the rule.
//
// A checker sees observations, which are values, and says what is wrong. It knows neither
// the simulator nor the servers, so it cannot look inside. [History] is the committed
// history against which several of them compare.
//
// The checkers of what clients and recipes are promised are in the simulator itself,
// because they compare with what each client has asked for and still holds. Read
// observed.go first.
package check
