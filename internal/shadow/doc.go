// Package shadow decides whether an observer gives the answers that the servers of an ensemble gave to their
// clients. It is the core of `bellwether shadow`.
//
//   - [Tap] decodes both directions of one client connection into a [Pair] for each reply.
//   - [Plan] makes the checks of a pair: what to read at the observer, and what the old server's reply says about
//     the result.
//   - [Check.Judge] compares the observer's answer with that.
//   - [Watches] compares the watch events between two replies, if the client watches.
//   - [Report] counts the outcomes.
//
// A reply is a statement about the tree at the zxid of its header. The observer answers later, at a zxid of its own.
// A field is compared only if the stat of the observer's answer proves that no transaction between the two zxids has
// changed it; stat.go has these rules. Nothing is ever written to the observer: the reply to a write is
// compared with what the observer shows at or after the zxid of the write.
//
// A client that has logged in by SASL has identities that the session at the observer lacks. What that session may read is
// compared. The rest is compared by a session of the super user, if there is one; see [Check.AsSuper].
//
// The package opens nothing and starts no goroutine; package relay below it has the sockets. Its values are not safe
// for concurrent use. Read tap.go first, then plan.go, judge.go and watch.go.
package shadow
