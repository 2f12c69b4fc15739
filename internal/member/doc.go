// Package member plans changes of the members of an ensemble.
//
// [New] compares the present membership with the wanted one, and with what is known of each
// server (a [View]). It returns a [Plan]: single steps in an order in which the quorums of two
// successive memberships always share a server. A newcomer is an observer first, and gets its vote
// when it has caught up. If the change that gives it a vote needs its acknowledgement, it follows
// without being a member instead, because an observer acknowledges nothing. [Single] judges one step. Both say with a [Problem] what could lose data
// or stop the service, and what would make the change safe.
//
// The package sends nothing, opens nothing, and has no clock. Read plan.go first.
package member
