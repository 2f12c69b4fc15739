// Package embed runs a server, or an ensemble of servers, inside a process, with
// faults on demand. It is for the tests of programs that use Bellwether or ZooKeeper.
//
//	e, err := embed.Start(ctx, embed.Options{Servers: 3})
//	if err != nil { … }
//	defer e.Close()
//	c, err := e.Client(ctx, nil)      // or zk.Connect(ctx, e.Servers(), nil)
//
// The servers are the same as those of `bellwether serve`. By default they listen on
// ports that the system chooses, and keep their data on a disk in memory; with
// [Options].Dir they use a real disk. With InMemory no socket is opened at all: the
// clients of [Ensemble.Client] reach the servers over a network inside the process.
// Such an ensemble and its clients work in a bubble of testing/synctest, where
// time passes only while all goroutines wait: a session of ten seconds expires
// after ten seconds of the bubble's clock, which take almost no real time.
//
//	synctest.Test(t, func(t *testing.T) {
//		e, err := embed.Start(t.Context(), embed.Options{Servers: 3, InMemory: true})
//		if err != nil { … }
//		defer e.Close()
//		c, err := e.Client(t.Context(), nil)
//		if err != nil { … }
//		defer c.Detach()                // clients end before the ensemble
//		e.Cut(embed.Session(c.Session().ID), embed.Everyone)
//		time.Sleep(time.Hour)           // takes a second or two
//		e.Heal()
//	})
//
// Recipes of package recipe also work in a bubble, and keep all their promises
// about time.
//
// Faults are calls:
//
//   - [Ensemble.Expire] ends a session as its server does.
//   - [Ensemble.Cut] and [Ensemble.Delay] affect links, one way, between servers
//     or with clients; [Ensemble.Mend] and [Ensemble.Heal] end them.
//   - [Ensemble.LoseNextReply] lets a server carry out a request and lose its answer.
//   - [Ensemble.DelayWatches] makes watch events late.
//   - [Server.Pause], [Server.Stop], [Server.Kill], [Server.Crash] and
//     [Server.Start] affect one server. A crash loses what was not fsynced, which
//     with [Options].NoSync includes some of what was acknowledged.
//   - [Server.HangDisk] lets a server's disk hang without an error, until
//     [Server.ResumeDisk].
//   - [Server.SkewClock] makes a server's clock wrong.
//
// For programs in other languages `bellwether serve --ensemble 3 --faults` offers
// the same over HTTP.
//
// Design: servers always talk to each other over the network inside the process. The
// bytes of a client's socket are copied to a link of that network, where the faults
// are. A link has a stream of bytes in each direction. A cut holds the bytes back, and
// a delay gives each byte a later time of arrival. As with TCP, no bytes are lost, and
// they stay in order. The package also parses the frames on a client's link, to find
// the session, the events and the replies.
//
// Goroutines: for each running server one that waits for its end, and those of
// the server. With sockets also one for each port, and three for each
// connection. Close waits for all of them.
//
// Locks: while network.mu is held, the locks of streams may be locked. While
// dialog.requests or dialog.replies is held, any other lock may be locked; a goroutine
// that writes to a client's link holds one of these two. All other locks are held one
// at a time. realDisk.mu is held across I/O.
//
// Read ensemble.go first, then server.go and faults.go; for the network read network.go,
// link.go, stream.go and dialog.go.
package embed
