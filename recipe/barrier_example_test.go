package recipe_test

import (
	"context"
	"log"

	"bellwether/recipe"
	"bellwether/zk"
)

// Workers wait until another client opens the gate.
func ExampleBarrier() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	gate, err := recipe.NewBarrier(c, "/app/gate", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := gate.Close(ctx); err != nil { // elsewhere, later: gate.Open(ctx)
		log.Fatal(err)
	}
	if err := gate.Wait(ctx); err != nil {
		log.Fatal(err)
	}
}

// Five processes begin together and end together.
func ExampleDoubleBarrier() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	b, err := recipe.NewDoubleBarrier(c, "/app/step-7", 5, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := b.Enter(ctx); err != nil {
		log.Fatal(err)
	}
	// Here all five have entered.
	if err := b.Leave(ctx); err != nil {
		log.Fatal(err)
	}
}
