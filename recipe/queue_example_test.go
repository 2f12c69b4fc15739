package recipe_test

import (
	"context"
	"errors"
	"expvar"
	"log"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// Jobs that are delivered again if their worker dies.
func ExampleWorkQueue() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	// A job that has crashed five workers goes to the queue /app/jobs.dead.
	jobs, err := recipe.NewWorkQueue(c, "/app/jobs", &recipe.QueueOptions{DeliveriesMax: 5})
	if err != nil {
		log.Fatal(err)
	}
	if err := jobs.PutPriority(ctx, []byte("resize 17"), 20); err != nil {
		log.Fatal(err)
	}
	if err := jobs.PutAt(ctx, []byte("resize 18"), 20, time.Now().Add(time.Hour)); err != nil {
		log.Fatal(err)
	}
	for {
		job, err := jobs.Take(ctx)
		if err != nil {
			log.Fatal(err)
		}
		result := resize(job.Data)
		// The same transaction stores the result and removes the job.
		switch err := job.Ack(ctx, zk.CreateOp("/app/results/17", result)); {
		case errors.Is(err, recipe.ErrTaken): // too slow: another worker has the job
		case err != nil:
			log.Fatal(err)
		}
	}
}

// Each thing that a recipe does is counted, and its duration measured.
func ExampleObservation() {
	var c *zk.Client // from zk.Connect
	recipes := expvar.NewMap("recipes")
	observe := func(o recipe.Observation) {
		recipes.Add(o.Recipe+" "+o.Event, 1)
		recipes.AddFloat(o.Recipe+" "+o.Event+" seconds", o.Took.Seconds())
		if o.Err != nil {
			recipes.Add(o.Recipe+" "+o.Event+" failed", 1)
		}
	}
	q, err := recipe.NewQueue(c, "/app/events", &recipe.QueueOptions{Observer: observe})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Take(context.Background()); err != nil { // observed as "queue take"
		log.Fatal(err)
	}
}

// Items that are removed when they are taken.
func ExampleQueue() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
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
