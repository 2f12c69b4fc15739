package recipe_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"bellwether/recipe"
	"bellwether/zk"
)

// A znode that shows, across sessions, that this process is present.
func ExampleRegister() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	r, err := recipe.Register(ctx, c, "/app/workers/host-a", []byte("idle"), nil)
	if err != nil {
		log.Fatal(err) // a *recipe.OwnedError if the znode belongs to another client
	}
	defer r.Close(ctx)
	if err := r.Set(ctx, []byte("busy")); err != nil {
		log.Print(err)
	}
	for s := r.Status(); !s.Final(); {
		fmt.Println("it", s.Standing, "by session", s.Session)
		if s, err = s.Next(ctx); err != nil {
			return
		}
	}
}

// The members of a group, again after each change.
func ExampleGroup() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	g, err := recipe.NewGroup(c, "/app/members", nil)
	if err != nil {
		log.Fatal(err)
	}
	me, err := g.Join(ctx, "host-a", []byte("10.0.0.1:80"))
	if err != nil {
		log.Fatal(err)
	}
	defer me.Close(ctx)
	for members, err := range g.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(members), "are there")
	}
}

// A local copy of a subtree, and its changes.
func ExampleOpenCache() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	k, err := recipe.OpenCache(ctx, c, "/app/config", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer k.Close()
	if n, ok := k.Get("/app/config/limit"); ok {
		fmt.Printf("limit %s\n", n.Data)
	}
	for e, err := range k.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Type, e.Node.Path)
	}
}

// A number to which many clients add.
func ExampleCounter() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	n, err := recipe.NewCounter(c, "/app/orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close(ctx)
	sum, err := n.Add(ctx, 1)
	fmt.Println(sum, err)
}

// A value that is computed from its old value.
func ExampleValue_Update() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	v, err := recipe.NewValue(c, "/app/names", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close(ctx)
	_, err = v.Update(ctx, func(old []byte) ([]byte, error) {
		return append(old, " host-a"...), nil
	})
	fmt.Println(err)
}

// Unique numbers, reserved in blocks of a thousand.
func ExampleIDs() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	ids, err := recipe.NewIDs(c, "/app/ids", &recipe.IDsOptions{Block: 1000})
	if err != nil {
		log.Fatal(err)
	}
	id, err := ids.Next(ctx)
	fmt.Println(id, err)
}

// A service finds its instances, also those that Curator registered.
func ExampleDiscovery() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	d, err := recipe.NewDiscovery(c, "/services", nil)
	if err != nil {
		log.Fatal(err)
	}
	r, err := d.Register(ctx, recipe.Instance{Name: "web", Address: "10.0.0.1", Port: 8080})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close(ctx)
	p, err := d.Provider(ctx, "web", rand.IntN)
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	if i, ok := p.Pick(); ok {
		fmt.Println(i.Address, i.Port)
	}
}

// Parts that members share; each part has at most one owner.
func ExamplePartitioner() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	p, err := recipe.NewPartitioner(c, "/app/shards", "host-a", []string{"s0", "s1", "s2"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = p.Run(ctx, func(ctx context.Context, part string, h *recipe.Handle) error {
		fmt.Println("owns", part, "with token", h.Token())
		<-ctx.Done() // then return, so that the part can move
		return ctx.Err()
	})
	log.Print(err)
}

// Tasks that members do, each once.
func ExampleWork() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	w, err := recipe.NewWork(c, "/app/jobs", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Submit(ctx, "report-7", []byte("2026-11")); err != nil {
		log.Fatal(err)
	}
	err = w.Run(ctx, "host-a", func(ctx context.Context, t recipe.Task, h *recipe.Handle) error {
		fmt.Printf("doing %s: %s\n", t.ID, t.Data)
		return nil // done: Run deletes the task
	})
	log.Print(err)
}

// The leader publishes a configuration. Each member sees it with the token of that leader.
func ExamplePublishConfig() {
	ctx := context.Background()
	var c *zk.Client          // from zk.Connect
	var e *recipe.Election    // from NewElection
	h, err := e.Campaign(ctx) // in the leader
	if err != nil {
		log.Fatal(err)
	}
	if err := recipe.PublishConfig(ctx, h, "/app/routes", []byte("v1"), nil); err != nil {
		log.Print(err)
	}
	for now, err := range recipe.WatchConfig(ctx, c, "/app/routes", nil) { // in each member
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s by the leader of token %v\n", now.Data, now.Token)
	}
}
