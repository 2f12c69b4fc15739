package recipe_test

import (
	"context"
	"log"

	"bellwether/recipe"
	"bellwether/zk"
)

// ledger is the site's own store, which survives a crash.
type ledger struct{}

func (ledger) Prepare(ctx context.Context, tx recipe.Tx) error { return nil } // an error would vote against it
func (ledger) Commit(ctx context.Context, tx recipe.Tx) error  { return nil }
func (ledger) Abort(ctx context.Context, tx recipe.Tx) error   { return nil }

func (ledger) begun(path string) error                       { return nil }
func (ledger) finished(path string, d recipe.Decision) error { return nil }
func (ledger) inDoubt() []string                             { return nil }

// A site takes part in all transactions.
func ExampleSite_Serve() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	var own ledger
	site, err := recipe.NewSite(c, "/app/transfers", "berlin", own, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, path := range own.inDoubt() { // prepared before a crash
		if _, err := site.Recover(ctx, path); err != nil {
			log.Fatal(err)
		}
	}
	log.Print(site.Serve(ctx))
}

// A coordinator records which transaction it begins and how that ended.
func ExampleCoordinator_Commit() {
	ctx := context.Background()
	var c *zk.Client // from zk.Connect
	var own ledger
	co, err := recipe.NewCoordinator(c, "/app/transfers", nil)
	if err != nil {
		log.Fatal(err)
	}
	path := co.Path()
	if err := own.begun(path); err != nil {
		log.Fatal(err)
	}
	d, err := co.Commit(ctx, path, []string{"berlin", "osaka"}, []byte("a to b: 100"),
		func(_ context.Context, tx recipe.Tx, d recipe.Decision) error { return own.finished(tx.Path, d) })
	if err != nil {
		log.Fatal(err) // co.Recover(ctx, path, …) finds out the decision
	}
	log.Print(d) // commit or abort
}
