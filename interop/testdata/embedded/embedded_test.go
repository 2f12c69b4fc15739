// Package embedded is a program outside of the module that tests itself with
// servers in its own process.
package embedded

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/embed"
	"bellwether/recipe"
	"bellwether/zk"
)

// TestElectionSurvives shows that the second of two candidates leads after the leading
// server was killed and the first candidate's session has expired. It runs over sockets,
// and in a bubble of synctest.
func TestElectionSurvives(t *testing.T) {
	t.Run("sockets", func(t *testing.T) { elect(t, embed.Options{Servers: 3}) })
	synctest.Test(t, func(t *testing.T) { elect(t, embed.Options{Servers: 3, InMemory: true}) })
}

func elect(t *testing.T, o embed.Options) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	e, err := embed.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	leads := make(chan *zk.Client)
	ended := make(chan struct{})
	for _, name := range []string{"ann", "bob"} {
		c, err := e.Client(ctx, &zk.Options{SessionTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		election, err := recipe.NewElection(c, "/election", name, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { ended <- struct{}{} }()
			defer c.Close(ctx)
			election.Lead(ctx, func(leading context.Context, _ *recipe.Handle) error {
				leads <- c
				<-leading.Done()
				return nil
			})
		}()
	}
	first := <-leads
	server, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Expire(ctx, first.Session().ID); err != nil {
		t.Fatal(err)
	}
	if second := <-leads; second == first {
		t.Error("the candidate whose session expired leads again before the other one")
	}
	cancel()
	<-ended
	<-ended
}
