package zk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"bellwether/zk"
)

func ExampleConnect() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := zk.Connect(ctx, "zk1,zk2:2181,[fd00::3]:2181/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close(context.Background())
	path, stat, err := c.Create(ctx, "/jobs/n-", []byte("me"), zk.Ephemeral, zk.Sequential)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(path, stat.Czxid)
}

// A write whose answer was lost may have been carried out: read the znode before you try again.
func ExampleUnknownOutcomeError() {
	var c *zk.Client // from Connect
	ctx := context.Background()
	data, stat, err := c.Get(ctx, "/counter")
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Set(ctx, "/counter", append(data, '+'), stat.Version)
	var lost *zk.UnknownOutcomeError
	switch {
	case errors.As(err, &lost):
		// Read /counter again: its version shows whether the write was carried out.
	case errors.Is(err, zk.ErrBadVersion):
		// Another client was faster.
	case err != nil:
		// The write was not carried out.
	}
}

// Wait until a znode is deleted.
func ExampleClient_ExistsW() {
	var c *zk.Client // from Connect
	ctx := context.Background()
	for {
		_, there, watch, err := c.ExistsW(ctx, "/lock")
		if err != nil {
			log.Fatal(err)
		}
		if !there {
			watch.Remove(ctx)
			return
		}
		if _, err := watch.Wait(ctx); err != nil {
			log.Fatal(err)
		}
	}
}

// Follow a whole subtree.
func ExampleClient_AddWatch() {
	var c *zk.Client // from Connect
	ctx := context.Background()
	stream, err := c.AddWatch(ctx, "/config", zk.WatchPersistentRecursive)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close(ctx)
	for {
		event, err := stream.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if event.Type == zk.Reconnected {
			fmt.Println("reconnected: read everything that changed after", event.Zxid)
			continue
		}
		fmt.Println(event.Type, event.Path)
	}
}

// Receive every transition of the status, in order.
func ExampleClient_States() {
	var c *zk.Client // from Connect
	for status := range c.States(context.Background()) {
		fmt.Println(status.State, status.Session, status.Err)
		if status.State == zk.Expired {
			fmt.Println("ephemerals are gone")
		}
	}
}

// A write that is carried out only while the bid of a lock exists.
func ExampleClient_Multi() {
	var c *zk.Client // from Connect
	_, err := c.Multi(context.Background(),
		zk.CheckOp("/lock/bid-0000000007", zk.AnyVersion),
		zk.SetOp("/state", []byte("mine"), zk.AnyVersion))
	if errors.Is(err, zk.ErrNoNode) {
		fmt.Println("no longer the holder")
	}
}

// For how long the session is proven to live.
func ExampleClient_Lease() {
	var c *zk.Client // from Connect
	defer c.KeepAlive(0)()
	if left := c.Lease().Left(); left > 0 {
		time.AfterFunc(left, func() { fmt.Println("look at the lease again, or stop") })
	}
}

// An ACL: everybody may read, and one user may do everything.
func ExampleACLs() {
	var c *zk.Client // from Connect
	ctx := context.Background()
	acl := zk.ACLs{
		{Perms: zk.PermAll, ID: zk.ID{Scheme: "auth"}}, // the user that creates the znode
		{Perms: zk.PermRead, ID: zk.ID{Scheme: "world", ID: "anyone"}},
	}
	if err := c.AddAuth(ctx, zk.Auth{Scheme: "digest", Data: []byte("user:password")}); err != nil {
		log.Fatal(err)
	}
	if _, _, err := c.Create(ctx, "/config", nil, acl); err != nil {
		log.Fatal(err)
	}
}

// Make a directory with its parents, and remove it with all that is in it.
func ExampleClient_EnsurePath() {
	var c *zk.Client // from Connect
	ctx := context.Background()
	if err := c.EnsurePath(ctx, "/app/jobs/done"); err != nil {
		log.Fatal(err)
	}
	if err := c.DeleteRecursive(ctx, "/app/jobs"); err != nil {
		log.Fatal(err)
	}
}
