package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"bellwether/recipe"
	"bellwether/zk"
)

// Work that one of many processes does, for as long as it leads.
func Example() {
	ctx := context.Background()
	// The timeout bounds how long nobody leads after the death of a leader. It must be longer than the time
	// within which the server that expires sessions learns of an answered ping.
	c, err := zk.Connect(ctx, "zk1,zk2,zk3", &zk.Options{SessionTimeout: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(ctx)

	host, _ := os.Hostname()
	e, err := recipe.NewElection(c, "/app/scheduler", host, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		for {
			select {
			case <-ctx.Done(): // no longer the leader: stop at once
				return ctx.Err()
			case <-time.After(time.Second):
				// Fails with recipe.ErrNotLeader if another client leads, and with a zk.UnknownOutcomeError if the
				// connection breaks. After either error Lead campaigns again. It returns any other error.
				if _, err := h.Do(ctx, zk.SetOp("/app/beat", []byte(host), zk.AnyVersion)); err != nil {
					return err
				}
			}
		}
	})
	log.Print(err)
}

// An error of a connection or session ends only the term, unless it is marked by Stop.
func ExampleStop() {
	ctx := context.Background()
	var e *recipe.Election // from NewElection
	var other *zk.Client   // a client of another system, without which no work can be done
	err := e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		if _, _, err := other.Create(ctx, "/feed/ready", nil); err != nil {
			return recipe.Stop(err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	log.Print(err)
}

// A leader that has finished its work resigns, so that another candidate leads.
func ExampleHandle_Resign() {
	ctx := context.Background()
	var e *recipe.Election // from NewElection
	err := e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		if overloaded() {
			return h.Resign(ctx) // does not wait for this function
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, recipe.ErrResigned) {
		log.Fatal(err)
	}
}

func overloaded() bool { return false }

// Programs that only want to know who leads watch LEADER, not the candidates.
func ExampleElection_Observe() {
	var e *recipe.Election // from NewElection
	for leader, err := range e.Observe(context.Background()) {
		switch {
		case err != nil:
			log.Fatal(err)
		case leader.Vacant():
			fmt.Println("nobody leads")
		default:
			fmt.Println(leader.ID, "leads with token", leader.Token)
		}
	}
}

// A term without Lead. A resource that is given the token with each request can refuse requests of an
// older leader.
func ExampleElection_Campaign() {
	ctx := context.Background()
	var e *recipe.Election // from NewElection
	h, err := e.Campaign(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := h.Proof(); err != nil {
		log.Print("the context is no proof: ", err)
	}
	send("http://store/batch", int64(h.Token()))
	<-h.Context().Done()
	var lost *recipe.LostError
	if errors.As(h.Lost(), &lost) {
		log.Print("not the leader any more: ", lost.Reason)
	}
}

func send(string, int64) {}
