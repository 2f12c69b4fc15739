// Package sasl holds the SASL mechanisms that ZooKeeper's clients and servers log in
// with, and the rules by which a login becomes an id.
//
// An [Exchange] is one run of a mechanism at one end: it takes tokens and returns tokens.
// [DigestClient] and [DigestServer] are the two ends of DIGEST-MD5 (RFC 2831), as the
// JDK implements it, because ZooKeeper uses the JDK's. [DigestUsers] holds the users that a
// server knows. A mechanism of another package implements [Exchange] for clients and [Acceptor]
// for servers: GSSAPI is in kerberos. The package jaas reads the files in which users and keys are
// named, and quorumauth carries an exchange between servers.
//
// [Authorize] decides which id a login gets. [Naming] is the rule of the client port: it
// shortens Kerberos names by [Rules] (security.auth_to_local). [AuthorizePeer] is the rule
// between servers.
//
// A password is a [Secret] from the moment it is read. A Secret does not print.
//
// Limits: a token to a server has at most [ResponseMax] bytes and a challenge at most
// [ChallengeMax], as in the JDK. There is no security layer: the quality is always "auth",
// and what follows the exchange is neither signed nor encrypted. DIGEST-MD5 protects a
// password on the wire only as well as MD5 does, so use TLS below it.
//
// Callers carry the tokens, set deadlines, limit the number of steps and of attempts, and
// end the connection after an error. An Exchange is for one connection and one goroutine.
//
// The package opens no file and no socket. It reads crypto/rand for nonces.
//
// Read exchange.go first, then digestserver.go.
package sasl
