// Package secure is the only implementation of TLS for the client port, the ports between
// servers, the admin server, and all programs that dial them. The keys of ZooKeeper's
// zoo.cfg configure it.
//
// [Parse] makes [Settings] of the keys of a family (ssl. or ssl.quorum.). [Open] reads their
// files into a [Store]. [Store.Server] and [Store.Client] return what crypto/tls needs to
// accept and to dial. [Store.Watch] reads the files again when they change. [Explain] says
// why a handshake failed. [Store.CheckMember] tells whether a certificate belongs to a member of
// the ensemble, [IdentityRule.Of] who a client is in the scheme x509, and [ValidSubject]
// whether a text can be such an id. [Detect] finds out whether a connection begins with TLS.
//
// Files are PEM, PKCS#12 and JKS, as ZooKeeper reads them. Errors name the key, the value or
// file, and the remedy; none shows a password. A certificate is accepted if a chain leads to
// one that is trusted, if its names are those of the other end where names are verified,
// and if no certificate of the chain is revoked where that is checked.
//
// Different from ZooKeeper, on purpose:
//
//   - An expired certificate in the trust store is not trusted; Java does not look at its dates.
//   - A name found by reverse lookup counts only if it resolves to the address again, and
//     an asterisk in a common name never stands for a part of an address.
//   - Names are verified whatever fips-mode says. In ZooKeeper 3.9 fips-mode is true by
//     default, and then servers do not verify each other's names.
//   - More forms of private keys in PEM are read, and no DSA keys.
//
// The package does not decide which ports use TLS or what a client may do. It does not
// log; the callers of Watch and Explain log.
//
// Only Watch has goroutines: those of its watcher, which end before it returns, and one for a
// read, which outlives it if a disk does not answer. A handshake
// waits for name servers, revocation lists and OCSP responders on its own goroutine, at most
// checkMax and no longer than the context of the handshake. One lock guards the reading of
// files, and each cache has a lock of its own; no lock is held while anything is read over
// the network.
//
// Read store.go first, then verify.go and keystore.go.
package secure
