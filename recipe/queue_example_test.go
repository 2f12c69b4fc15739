package recipe_test

import (
	"context"
	"errors"
	"log"

	"bellwether/recipe"
	"bellwether/zk"
)

// Jobs that come back when whoever has one dies.
func ExampleWorkQueue() {
	ctx := context.Background()
	var c *zk.Client // of zk.Connect
	jobs, err := recipe.NewWorkQueue(c, "/app/jobs", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.PutPriority(ctx, []byte("resize 17"), 20); err != nil {
		log.Fatal(err)
	}
	for {
		job, err := jobs.Take(ctx)
		if err != nil {
			log.Fatal(err)
		}
		result := resize(job.Data)
		// The job goes when its result is there, in one transaction.
		switch err := job.Ack(ctx, zk.CreateOp("/app/results/17", result)); {
		case errors.Is(err, recipe.ErrTaken): // too slow: another has it
		case err != nil:
			log.Fatal(err)
		}
	}
}

// Items that are gone once taken.
func ExampleQueue() {
	ctx := context.Background()
	var c *zk.Client // of zk.Connect
	q, err := recipe.NewQueue(c, "/app/events", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := q.Put(ctx, []byte("it rains")); err != nil {
		log.Fatal(err)
	}
	item, err := q.Take(ctx)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("%s", item)
}

func resize(image []byte) []byte { return image }
