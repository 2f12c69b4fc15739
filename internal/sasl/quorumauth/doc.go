// Package quorumauth carries a SASL exchange over a connection between servers, as ZooKeeper
// does with quorum.auth.enableSasl: on the quorum port before anything else, on the election
// port behind the initial message.
//
// [Dial] is the end of the server that dialled, [Accept] the other one. The mechanism is an
// exchange of package sasl. The packets are those of package peerwire.
//
// Limits: a packet has at most [peerwire.QuorumAuthMax] bytes. An acceptor sends at most
// [RoundsMax] challenges, as ZooKeeper does, so an exchange always ends if the connection has a
// deadline.
//
// Callers set that deadline, and close the connection after an error. An acceptor that does not
// require authentication may keep the connection after [ErrNotOffered], because the peer has not
// broken the protocol. ZooKeeper also keeps it after a failed exchange, which admits everybody.
//
// Read exchange.go, which is all there is.
package quorumauth
