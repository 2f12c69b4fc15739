package embed_test

import (
	"context"
	"fmt"
	"log"

	"bellwether/embed"
	"bellwether/zk"
)

// An ensemble of three servers inside the process. Its leader is killed, and the client continues.
func Example() {
	ctx := context.Background()
	e, err := embed.Start(ctx, embed.Options{Servers: 3, InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	c, err := e.Client(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	if _, _, err := c.Create(ctx, "/greeting", []byte("hello")); err != nil {
		log.Fatal(err)
	}
	leader, err := e.Leader(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		log.Fatal(err)
	}
	for {
		data, _, err := c.Get(ctx, "/greeting")
		if err == nil {
			fmt.Printf("%s\n", data)
			break
		}
	}
	// Output: hello
}

// The reply to a create is lost. The client does not know whether the znode was created; CreateProtected finds
// out.
func ExampleEnsemble_LoseNextReply() {
	ctx := context.Background()
	e, err := embed.Start(ctx, embed.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	c, err := e.Client(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	e.LoseNextReply(embed.OpCreate)
	_, _, err = c.Create(ctx, "/plain", nil)
	fmt.Println(err != nil)
	e.LoseNextReply(embed.OpCreate)
	_, _, err = c.CreateProtected(ctx, "/protected-", nil, zk.Sequential)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

// An ensemble with TLS for clients and between servers. Its certificates are made for this run only.
func ExampleEnsemble_TLSConfig() {
	ctx := context.Background()
	e, err := embed.Start(ctx, embed.Options{Servers: 3, TLS: true})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	c, err := zk.Connect(ctx, e.Servers(), &zk.Options{TLS: e.TLSConfig()}) // e.Client(ctx, nil) does the same
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)
	// Only clients with this certificate have access to the znode.
	only := zk.ACLs{{Perms: zk.PermAll, ID: zk.ID{Scheme: "x509", ID: "CN=client"}}}
	if _, _, err := c.Create(ctx, "/secret", []byte("hello"), only); err != nil {
		log.Fatal(err)
	}
	data, _, err := c.Get(ctx, "/secret")
	fmt.Printf("%s %v\n", data, err)
	// Output: hello <nil>
}
