package sasl

import (
	"crypto/rand"
	"encoding/base64"
)

// Exchange is one run of a mechanism, at the client's or the server's end.
type Exchange interface {
	// Mechanism is the mechanism's registered name, such as DIGEST-MD5.
	Mechanism() string
	// Step takes the other end's token and returns the answer. A client's first step
	// takes nil. An answer of nil means that there is nothing to send; an answer of
	// length 0 is sent.
	//
	// A server that is done has accepted the client. Its answer, which may be nil,
	// goes to the client together with the report of success. A client that is done with
	// nil has verified the server. A client that is done with an answer sends it, and the
	// server then reports whether the login succeeded.
	//
	// After an error, and after done, each further step is an error.
	Step(token []byte) (answer []byte, done bool, err error)
}

// Acceptor is the server's end of an Exchange.
type Acceptor interface {
	Exchange
	// AuthorizationID is the id that the client has been given. It is empty until the
	// exchange is done.
	AuthorizationID() string
}

// Authorize returns the id of a client that has proved to be authenticationID and wants
// to act as authorizationID. They are equal if the client names no other id. An error
// refuses the login.
type Authorize func(authenticationID, authorizationID string) (string, error)

// Service holds what the two ends of a DIGEST-MD5 exchange must agree on. Server is also the
// realm.
type Service struct {
	Protocol, Server string
}

// The services that ZooKeeper has: the client port, and the quorum and election ports.
var (
	ClientService = Service{"zookeeper", "zk-sasl-md5"}
	QuorumService = Service{"zookeeper-quorum", "zk-quorum-sasl-md5"}
)

func (s Service) uri() string { return s.Protocol + "/" + s.Server }

// nonceSize is the number of random bytes of a nonce, the same as in the JDK.
const nonceSize = 30

// newNonce returns a nonce that nobody can guess.
func newNonce() string {
	var b [nonceSize]byte
	rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}
