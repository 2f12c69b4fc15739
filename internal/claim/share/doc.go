// Package share holds the state machines of members that divide parts or tasks among themselves. [Share]
// assigns each part to a member. [Sharing] is one member. It makes no requests; its driver registers,
// follows znodes and bids on its behalf. [Task] carries out one task.
//
// Read sharing.go first.
package share
