// Package embed runs a server, or an ensemble of servers, within a process,
// with faults on demand: for the tests of programs that use Bellwether or ZooKeeper.
//
//	e, err := embed.Start(ctx, embed.Options{Servers: 3})
//	if err != nil { … }
//	defer e.Close()
//	c, err := e.Client(ctx, nil)      // or zk.Connect(ctx, e.Servers(), nil)
//
// The servers are those that `bellwether serve` runs. By default they listen on ports
// that the system hands out and keep their data on a disk in memory; with
// [Options].Dir on a real one. With InMemory no socket is opened at all: the
// clients of [Ensemble.Client] reach them over a network within the process.
// Such an ensemble and its clients work within a bubble of testing/synctest,
// where time passes only while everybody waits: a session of ten seconds
// expires at once, after exactly ten seconds.
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
// Recipes of package recipe work in a bubble as well, with all that they
// promise about time.
//
// Faults are calls:
//
//   - [Ensemble.Expire] ends a session as its server does.
//   - [Ensemble.Cut] and [Ensemble.Delay] are for links, one way, between servers
//     or with clients; [Ensemble.Mend] and [Ensemble.Heal] take them back.
//   - [Ensemble.LoseNextReply] has a request carried out whose answer is lost.
//   - [Ensemble.DelayWatches] makes watch events late.
//   - [Server.Pause], [Server.Stop], [Server.Kill], [Server.Crash] and
//     [Server.Start] are for a server; a crash loses what was not synced, which
//     with [Options].NoSync is some of what was acknowledged.
//   - [Server.HangDisk] lets a server's disk hang without an error, until
//     [Server.ResumeDisk].
//   - [Server.SkewClock] makes a server's clock wrong.
//
// For programs in other languages `bellwether serve --ensemble 3 --faults` offers
// the same over HTTP.
//
// How it works. Servers talk to each other over the network within the
// process in any case, and a client's socket is carried over a link of that
// network, where the faults are. A link has a stream of bytes each way: a cut
// holds the bytes back, and a delay gives each its time; nothing is lost or
// overtaken, as TCP has it. A client's link is also read frame by frame, for
// its session, events and replies.
//
// Goroutines: for each running server one that waits for its end, and those of
// the server. With sockets also one for each port, and three for each
// connection. Close waits for all.
//
// Locks: network.mu, under which those of streams are taken; dialog.requests
// and dialog.replies, held by who writes, under which any other may be taken;
// the rest are taken alone. realDisk.mu is held across I/O.
//
// Read ensemble.go first, then server.go and faults.go; for the network network.go,
// link.go, stream.go and dialog.go.
package embed
