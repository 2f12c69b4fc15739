// Package kerberos logs in by the SASL mechanism GSSAPI (RFC 4752) with Kerberos 5, as Java's
// clients and servers do it for ZooKeeper. It uses gokrb5 for the messages of Kerberos and for
// talking to the key distribution center (KDC).
//
// A [Service] accepts logins with the keys of a keytab; [Service.Accept] begins one exchange. A
// [Login] has the ticket of a client, from a keytab or from a ticket cache; [Login.Begin] begins
// one exchange. Both implement the interfaces of package sasl. [DefaultRealm] reads the realm that
// the rule DEFAULT of sasl.Naming needs.
//
// Limits: the quality is "auth", so nothing that follows the exchange is signed or encrypted.
// Only keys of type AES work (RFC 3962 and RFC 8009); DES and RC4 are refused. Channel bindings and
// delegation are ignored. A token has at most [TokenMax] bytes. A service remembers up to
// [ReplayMax] requests of clients for ten minutes, and refuses a request that is repeated.
//
// A keytab and a ticket cache are read again when they have changed; if that fails, what was read
// before stays in use. A Login with a keytab gets a new ticket before the old one expires. A Login
// with a ticket cache renews a renewable ticket in memory if it is used in the last sixth of its
// life, and does not write the cache: another program keeps the cache fresh, such as kinit -R or
// k5start.
//
// Callers end a Login with Close. Begin may wait for the KDC, up to 5 seconds for each address of
// one, so it must not be called where nothing may block. A Service does no I/O besides reading its
// keytab. Service and Login may be shared by goroutines; an exchange may not.
//
// gokrb5 runs a goroutine for each Login, which renews the ticket. Close ends it, without waiting.
//
// Read accept.go first.
package kerberos
