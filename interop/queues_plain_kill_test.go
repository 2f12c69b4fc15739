package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

const (
	popItems = 300
	popKills = 6
	popAhead = 20 // number of items that wait in the queue

	consumerAddr = "CONSUMER_ADDR"
	consumerPath = "CONSUMER_PATH"
)

func init() {
	if addr := os.Getenv(consumerAddr); addr != "" {
		fmt.Println("failed:", consumerMain(addr, os.Getenv(consumerPath)))
		os.Exit(1)
	}
}

// TestConsumersKilledWithKazoo kills consumers of Bellwether and of kazoo's Queue, which removes
// an item when it is taken, at random. No item may be taken twice, and a killed consumer may
// lose at most one item.
func TestConsumersKilledWithKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		path := fresh("consumers")
		q, err := recipe.NewQueue(attach(t, s.Addr, electionTimeout), path, &recipe.QueueOptions{Naming: recipe.KazooItems})
		if err != nil {
			t.Fatal(err)
		}
		p := &popping{t: t, addr: s.Addr, path: path, q: q, took: map[string]bool{}}
		for i := range 4 {
			p.consumers = append(p.consumers, p.start(i%2 == 0))
		}
		p.run()
	})
}

// popping records what the consumers of a plain queue print.
type popping struct {
	t          *testing.T
	addr, path string
	q          *recipe.Queue
	consumers  []*consumer
	took       map[string]bool
	by         [2]int // items taken by kazoo's consumers and by ours
	put, kills int
}

type consumer struct {
	*remote
	ours bool
}

func (p *popping) start(ours bool) *consumer {
	if ours {
		return &consumer{startRemote(p.t, consumerAddr+"="+p.addr, consumerPath+"="+p.path), true}
	}
	return &consumer{begin(p.t, exec.Command(debianPython, "-B", "queues/consumer.py", p.addr, p.path)), false}
}

// run adds items, reads the consumers' lines and kills consumers until only items that killed
// consumers may have are missing. It adds items as long as one kind of consumer has had none,
// because it may have started late.
func (p *popping) run() {
	more := func() bool { return p.put < popItems || p.by[0] == 0 || p.by[1] == 0 }
	for end := time.Now().Add(2 * electionWait); more() || p.kills < popKills || p.left() > 0 || len(p.took) < p.put-p.kills; {
		if time.Now().After(end) {
			p.t.Fatalf("%d of %d items were taken, by kazoo's %d, by ours %d; %d kills", len(p.took), p.put, p.by[0], p.by[1], p.kills)
		}
		if more() && p.put-len(p.took)-p.kills < popAhead {
			if err := p.q.Put(p.t.Context(), fmt.Appendf(nil, "item%d", p.put)); err != nil {
				p.t.Fatal(err)
			}
			p.put++
		}
		for i, one := range p.consumers {
			p.hear(one)
			if due := (p.kills + 1) * popItems / (popKills + 1); len(p.took) > due-popAhead && p.kills < popKills && rand.IntN(20) == 0 {
				p.kill(i)
			}
		}
		<-time.After(time.Millisecond)
	}
	for _, one := range p.consumers { // read their last lines
		one.kill()
		p.hear(one)
	}
	p.t.Logf("%d of %d items were taken, by kazoo's %d, by ours %d; %d kills", len(p.took), p.put, p.by[0], p.by[1], p.kills)
}

// left returns the number of items in the queue.
func (p *popping) left() int {
	n, err := p.q.Len(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// hear reads what a consumer has printed so far.
func (p *popping) hear(one *consumer) {
	for len(one.lines) > 0 {
		line := <-one.lines
		word, item, _ := strings.Cut(line, " ")
		switch {
		case word != "@took":
			p.t.Fatalf("ours %v: %s", one.ours, line)
		case p.took[item]:
			p.t.Fatalf("%s was taken twice", item)
		}
		p.took[item] = true
		if one.ours {
			p.by[1]++
		} else {
			p.by[0]++
		}
	}
}

// kill kills a consumer and starts another one.
func (p *popping) kill(i int) {
	one := p.consumers[i]
	one.kill()
	p.hear(one)
	p.kills++
	p.consumers[i] = p.start(one.ours)
}

// consumerMain is the main function of a Bellwether consumer.
func consumerMain(addr, path string) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	q, err := recipe.NewQueue(c, path, &recipe.QueueOptions{Naming: recipe.KazooItems})
	if err != nil {
		return err
	}
	for {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		fmt.Println("@took", string(item))
		<-time.After(time.Duration(1+rand.IntN(20)) * time.Millisecond)
	}
}
