// Package kerberos logs clients of package zk in with Kerberos 5, by the SASL mechanism
// GSSAPI, as ZooKeeper's servers expect it:
//
//	login, err := kerberos.New(kerberos.Options{Principal: "app@EXAMPLE.COM", KeyTab: "/etc/app.keytab"})
//	if err != nil { … }
//	defer login.Close()
//	c, err := zk.Connect(ctx, "zk1,zk2", &zk.Options{SASL: login.Begin})
//
// One [Login] serves any number of clients. It obtains a ticket from the key distribution
// center (KDC) when a client first connects, and renews it. Nothing that follows the login
// is encrypted or signed; use TLS for that.
//
// The package is apart from zk because it needs the library gokrb5; zk needs the standard
// library alone. It does not read the environment.
//
// Goroutines: one for each Login renews the ticket, and at most one waits for the KDC. Close
// does not wait for the KDC.
package kerberos
