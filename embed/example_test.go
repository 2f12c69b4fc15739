package embed_test

import (
	"context"
	"fmt"
	"log"

	"bellwether/embed"
	"bellwether/zk"
)

// An ensemble of three within the process; its leader is killed, and the
// client goes on.
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

// The reply to a create is lost: whether the znode was made is not known, but
// for a create that looks.
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
