// Package value holds the state machines that change or follow the data of one znode. [Change] changes a
// value or a counter by compare and set. [Announce] writes a leader's configuration, and [Announcements]
// follows it. [Leaders] follows the current leader.
package value
