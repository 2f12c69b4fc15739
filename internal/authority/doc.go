// Package authority makes the certificates of an ensemble: a private certificate authority
// in a folder, a certificate for each server, and one for each client that is named.
//
// [Init] does all of it, and is safe to repeat: it keeps what is still good, renews what
// will expire soon, and issues what is missing. [Authority] is the authority itself. A
// certificate is one PEM file that holds the private key, the certificate and nothing else;
// Bellwether and Apache ZooKeeper read it as a key store of type PEM, and the authority's
// certificate as a trust store.
//
// The package uses the standard library only. It never prints a private key.
package authority
