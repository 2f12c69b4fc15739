package kerberos_test

import (
	"context"
	"log"

	"bellwether/zk"
	"bellwether/zk/kerberos"
)

// A program logs in with the keys of a keytab, inside TLS.
func Example() {
	login, err := kerberos.New(kerberos.Options{Principal: "app@EXAMPLE.COM", KeyTab: "/etc/app/keytab"})
	if err != nil {
		log.Fatal(err)
	}
	defer login.Close()
	c, err := zk.Connect(context.Background(), "zk1:2281,zk2:2281", &zk.Options{
		SASL:     login.Begin,
		TLSFiles: &zk.TLSFiles{CA: "/etc/app/ca.pem"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(context.Background())
}
