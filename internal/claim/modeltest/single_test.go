package modeltest

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/wire"
	"pgregory.net/rapid"
)

// Queues and counters in the model of single operations.

const (
	modelQueue  = "/app/q"
	modelClaims = "/app/taken"
	modelQLine  = "/app/line"
	modelLater  = "/app/later"
	modelDead   = "/app/dead"
	modelValue  = "/app/n"
)

// queueWorld has producers and consumers of one queue.
type queueWorld struct {
	*singleWorld
	claims      string // where items are claimed; empty: a taken item is deleted at once
	most        int    // deliveries after which an item is dead. If it is not 0, some items are due later than they are put
	dueTooEarly bool   // a deliberate fault: producers name a time before the item is due
	nonces      int
	puts        int            // items that are still to be put
	got         map[string]int // how often an item was taken or acknowledged, by its data
	due         map[string]int64
	claimed     map[string]int // how often an item was claimed, by its data
	over        map[string]int // how often an item was acknowledged or declared dead, by its data
}

func newQueueWorld(choose func(int) int, b singleBroken, claims string) *queueWorld {
	return newQueueWorldOf(&queueWorld{singleWorld: newSingleWorld(choose, b), claims: claims})
}

// newLateWorld has items that are not due at once, and that die after three deliveries.
func newLateWorld(choose func(int) int, b singleBroken, dueTooEarly bool) *queueWorld {
	return newQueueWorldOf(&queueWorld{singleWorld: newSingleWorld(choose, b), claims: modelClaims, most: 3, dueTooEarly: dueTooEarly})
}

func newQueueWorldOf(w *queueWorld) *queueWorld {
	w.puts, w.got, w.due, w.claimed, w.over = 30, map[string]int{}, map[string]int64{}, map[string]int{}, map[string]int{}
	w.effect = w.isEffect
	for i := range 2 {
		w.add(fmt.Sprint("producer ", i), w.newPut, nil)
	}
	for i := range 3 {
		w.addConsumer(fmt.Sprint("consumer ", i))
	}
	return w
}

func (w *queueWorld) nonce() (n claim.Nonce) {
	w.nonces++
	n[0], n[1] = byte(w.nonces), byte(w.nonces>>8)
	return n
}

// newPut returns the operation that puts one item. The data of each item is unique.
func (w *queueWorld) newPut() claimtest.Single {
	if w.puts == 0 {
		return nil
	}
	w.puts--
	n := w.nonce().String()
	cfg := queues.PutConfig{Items: modelQueue, Mark: claim.Join(modelQLine, n+"-put"), Prefix: fmt.Sprintf("entry-%03d-", w.choose(3)), Data: []byte(n)}
	if cfg.Unique = w.choose(2) == 0; cfg.Unique {
		cfg.Prefix = n + "-" + cfg.Prefix
	}
	if w.most > 0 && w.choose(2) == 0 {
		due := w.clock() + int64(w.choose(4000)) - 500
		w.due[n] = due
		if w.dueTooEarly {
			due -= 1000
		}
		cfg.Items, cfg.Prefix, cfg.Wake = modelLater, queues.DuePrefix(time.UnixMilli(due))+cfg.Prefix, claim.Join(modelQueue, n+"-due")
	}
	return queues.NewPut(cfg)
}

// addConsumer adds a client that takes items. If items are claimed, it also acknowledges them.
func (w *queueWorld) addConsumer(name string) {
	var taken *queues.Take
	w.add(name, func() claimtest.Single {
		if taken != nil && w.claims != "" {
			item, _, session := taken.Taken()
			return queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: item, Claim: claim.Join(w.claims, path.Base(item)), Session: session, Release: w.choose(4) == 0})
		}
		cfg := queues.TakeConfig{Items: modelQueue, Line: modelQLine, Claims: w.claims, Nonce: w.nonce()}
		if w.most > 0 {
			cfg.Delayed, cfg.Most, cfg.Dead = modelLater, w.most, modelDead
		}
		return queues.NewTake(cfg)
	}, func(m claimtest.Single) {
		switch m := m.(type) {
		case *queues.Take:
			if m.Outcome() == claim.Succeeded {
				taken = m
				w.note(m)
			}
		case *queues.Acknowledgement:
			if m.Outcome() != claim.Withdrawn { // the client tries again if it withdrew
				taken = nil
			}
		}
	})
}

// note checks that no item was given to two consumers, if items are not claimed.
func (w *queueWorld) note(m *queues.Take) {
	_, data, _ := m.Taken()
	if w.got[string(data)]++; w.claims == "" && w.got[string(data)] > 1 {
		w.violated("item %s was taken twice", data)
	}
}

// isEffect reports whether a transaction puts, takes, or ends the claim of an item.
func (w *queueWorld) isEffect(a *actor, ops []claim.Op) bool {
	for _, o := range ops {
		dir, name := path.Split(o.Path)
		switch dir {
		case modelLater + "/":
			if _, put := a.m.(*queues.Put); put {
				return true
			}
		case modelDead + "/":
			data := string(o.Data)
			if w.over[data]++; w.claimed[data] < w.most {
				w.violated("%s is dead after %d deliveries", data, w.claimed[data])
			}
		case modelQueue + "/":
			if _, put := a.m.(*queues.Put); put {
				return true
			}
			if due := w.due[string(o.Data)]; o.Kind == claim.OpCreate && due > w.clock() {
				w.violated("%s is delivered %d ms before it is due", o.Data, due-w.clock())
			}
			if _, acknowledges := a.m.(*queues.Acknowledgement); acknowledges && o.Kind == claim.OpDelete {
				w.over[w.tree()[o.Path].Data]++
			}
			if w.most > 0 {
				continue // moving an item to another place is not an outcome of the operation
			}
			if _, take := a.m.(*queues.Take); take && o.Kind == claim.OpDelete {
				w.checkOrder(a, name)
				return true
			}
		case modelClaims + "/":
			if o.Kind == claim.OpCreate {
				w.checkOrder(a, name)
				w.checkDeliveries(w.tree()[claim.Join(modelQueue, name)].Data)
			} else if owner := w.tree()[o.Path].Owner; owner != a.session {
				w.violated("%s ends the claim of session %v on %s", a.name, owner, name)
			}
			return true
		}
	}
	return false
}

// checkDeliveries checks that no item is delivered more often than is allowed.
func (w *queueWorld) checkDeliveries(data string) {
	if w.claimed[data]++; w.most > 0 && w.claimed[data] > w.most {
		w.violated("%s is delivered %d times, of %d", data, w.claimed[data], w.most)
	}
}

// checkOrder checks that a consumer takes the first of the items that it has found: by priority, and then
// by age.
func (w *queueWorld) checkOrder(a *actor, name string) {
	key := func(n string) string { return n[strings.Index(n, "entry-"):] }
	for _, n := range a.listed[modelQueue] {
		if key(n) < key(name) && !slices.Contains(a.listed[modelClaims], n) {
			w.violated("%s takes %s, and %s stands before it", a.name, name, n)
		}
	}
}

// run plays one history: faults, then healing.
func (w *queueWorld) run(steps int) {
	for range steps {
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.puts = 0
	w.settle()
	w.checkRest()
}

// checkRest checks what is left at the end: no item, no claim, no mark, and in the line only consumers
// that wait.
func (w *queueWorld) checkRest() {
	for p, n := range w.tree() {
		switch dir, name := path.Split(p); dir {
		case modelQueue + "/", modelClaims + "/", modelLater + "/":
			w.violated("%s is left", p)
		case modelDead + "/":
			if w.over[n.Data] != 1 {
				w.violated("%s is dead, and over %d times", n.Data, w.over[n.Data])
			}
		case modelQLine + "/":
			if !slices.ContainsFunc(w.actors, func(a *actor) bool { return a.session == n.Owner && strings.Contains(name, "-n_") }) {
				w.violated("%s is left in the line", p)
			}
		}
	}
	if line := children(w.tree(), modelQLine); len(line) > 3 {
		w.violated("in the line are %v", line)
	}
}

func (w *singleWorld) fail(t interface{ Fatalf(string, ...any) }) {
	if w.wrong != "" {
		t.Fatalf("%s\n%s", w.wrong, strings.Join(w.trace[max(0, len(w.trace)-80):], "\n"))
	}
}

// queueKinds are the parents of claims: none for a queue without acknowledgement, and one for a queue with it.
var queueKinds = map[string]string{"taken": "", "acknowledged": modelClaims}

// TestQueueUnderFaults checks that an item is put once and is taken once and in order, or comes back;
// that each operation reports what it did; and that nothing is left at the end.
func TestQueueUnderFaults(t *testing.T) {
	for name, claims := range queueKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newQueueWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, singleBroken{}, claims)
				w.run(rapid.IntRange(0, 400).Draw(t, "steps"))
				w.fail(t)
			})
		})
	}
}

// TestQueueSeeds checks the rules of TestQueueUnderFaults in longer histories.
func TestQueueSeeds(t *testing.T) {
	for name, claims := range queueKinds {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(claimtest.Seeds / 8) {
				w := newQueueWorld(seededChoice(seed), singleBroken{}, claims)
				if w.run(3000); w.wrong != "" {
					t.Logf("seed %d", seed)
					w.fail(t)
				}
			}
		})
	}
}

// TestLateAndDeadItemsUnderFaults checks that an item is not delivered before it is due, nor more often
// than is allowed. After the last delivery it is once among the dead items, and nothing else is left.
func TestLateAndDeadItemsUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newLateWorld(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, singleBroken{}, false)
		w.run(rapid.IntRange(0, 400).Draw(t, "steps"))
		w.fail(t)
	})
}

// TestLateAndDeadItemsSeeds checks the rules of TestLateAndDeadItemsUnderFaults in longer histories, in which some
// items are due later than they are put, and some are delivered too often.
func TestLateAndDeadItemsSeeds(t *testing.T) {
	late, dead := 0, 0
	for seed := range uint64(claimtest.Seeds / 8) {
		w := newLateWorld(seededChoice(seed), singleBroken{}, false)
		if w.run(3000); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
		late += len(w.due)
		dead += len(children(w.tree(), modelDead))
	}
	if late == 0 || dead == 0 {
		t.Errorf("%d items came late, and %d are dead: this shows nothing", late, dead)
	}
}

// TestLateAndDeadChecksNotice breaks one rule at a time, and requires that some history fails.
func TestLateAndDeadChecksNotice(t *testing.T) {
	for name, b := range map[string]singleBroken{
		"transactions are not whole": {torn: true},
		"named too early":            {},
	} {
		t.Run(name, func(t *testing.T) {
			noticed(t, func(seed uint64) *singleWorld {
				w := newLateWorld(seededChoice(seed), b, b == singleBroken{})
				w.run(2000)
				return w.singleWorld
			})
		})
	}
}

// TestQueueChecksNotice breaks one rule at a time, and requires that some history fails.
func TestQueueChecksNotice(t *testing.T) {
	for name, b := range map[string]singleBroken{
		"sync does nothing":                   {noSync: true},
		"a lost answer counts as a refusal":   {blind: true},
		"transactions are not whole":          {torn: true},
		"what a session has made outlives it": {keep: true},
	} {
		t.Run(name, func(t *testing.T) {
			noticed(t, func(seed uint64) *singleWorld {
				w := newQueueWorld(seededChoice(seed), b, queueKinds[[]string{"taken", "acknowledged"}[seed%2]])
				w.run(2000)
				return w.singleWorld
			})
		})
	}
}

// noticed requires that some history breaks a rule.
func noticed(t *testing.T, history func(seed uint64) *singleWorld) {
	t.Helper()
	for seed := range uint64(500) {
		if w := history(seed); w.wrong != "" {
			t.Logf("seed %d: %s", seed, w.wrong)
			return
		}
	}
	t.Fatal("no history showed it")
}

// counterWorld has clients that add 1 to one counter, a limited number of times in total.
type counterWorld struct {
	*singleWorld
	adds           int
	least, unknown int // number of additions that succeeded, and number of those whose outcome is unclear
}

func newCounterWorld(choose func(int) int, b singleBroken) *counterWorld {
	w := &counterWorld{singleWorld: newSingleWorld(choose, b), adds: 20}
	w.effect = func(_ *actor, ops []claim.Op) bool {
		return slices.ContainsFunc(ops, func(o claim.Op) bool { return o.Kind == claim.OpSet && o.Path == modelValue })
	}
	for i := range 4 {
		var mark value.Mark
		at := claim.Join(modelValue, fmt.Sprint("_m_", i))
		w.add(fmt.Sprint("client ", i), func() claimtest.Single {
			if dead := slices.Contains(w.dead, mark.Session); mark.Session != 0 && !dead && w.choose(4) == 0 {
				return registry.NewRemoval(at, mark.Session)
			}
			if w.adds == 0 {
				return nil
			}
			w.adds--
			return value.NewChange(value.ChangeConfig{Path: modelValue, Initial: []byte("0"), Mark: at}, mark)
		}, func(m claimtest.Single) {
			switch m := m.(type) {
			case *value.Change:
				mark = m.Mark()
				w.count(m)
			case *registry.Removal:
				if m.Outcome() == claim.Succeeded {
					w.checkRemoved(at, mark.Session)
					mark.Session = 0
				}
			}
		})
	}
	return w
}

// checkRemoved checks that a session has no znode left at a path.
func (w *counterWorld) checkRemoved(at string, owner wire.SessionID) {
	if n := w.tree()[at]; n != nil && n.Owner == owner {
		w.violated("%s of session %v is left", at, owner)
	}
}

func (w *counterWorld) count(m claimtest.Single) {
	switch m.Outcome() {
	case claim.Succeeded:
		w.least++
	case claim.Unclear:
		w.unknown++
	}
}

// run plays one history. At the end the counter must be at least the number of additions that succeeded,
// and at most that plus the unclear ones.
func (w *counterWorld) run(steps int) {
	for range steps {
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.settle()
	n := w.tree()[modelValue]
	if n == nil {
		return
	}
	most := w.least + w.unknown + w.crashes
	if sum, err := value.ParseCounter(value.DecimalCounter, []byte(n.Data)); err != nil || int(sum) < w.least || int(sum) > most {
		w.violated("the sum is %s (%v), and %d to %d were counted", n.Data, err, w.least, most)
	}
}

// runner is a model that can play histories.
type runner interface {
	run(steps int)
	world() *singleWorld
}

func (w *singleWorld) world() *singleWorld { return w }

// underFaults plays short random histories, which rapid can shrink, and then longer ones. Then it breaks
// one rule at a time, and requires that some history fails.
func underFaults[W runner](t *testing.T, made func(choose func(n int) int, b singleBroken) W) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		w := made(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, singleBroken{})
		w.run(rapid.IntRange(0, 300).Draw(t, "steps"))
		w.world().fail(t)
	})
	for seed := range uint64(claimtest.Seeds / 4) {
		w := made(seededChoice(seed), singleBroken{})
		if w.run(1500); w.world().wrong != "" {
			t.Logf("seed %d", seed)
			w.world().fail(t)
		}
	}
	for name, b := range map[string]singleBroken{
		"sync does nothing":                 {noSync: true},
		"a lost answer counts as a refusal": {blind: true},
		"transactions are not whole":        {torn: true},
	} {
		t.Run(name, func(t *testing.T) {
			noticed(t, func(seed uint64) *singleWorld {
				w := made(seededChoice(seed), b)
				w.run(1500)
				return w.world()
			})
		})
	}
}

// TestCounterUnderFaults checks that no addition is counted twice and none is lost.
func TestCounterUnderFaults(t *testing.T) { underFaults(t, newCounterWorld) }

// newNumbersWorld has clients that reserve numbers of one counter. Some numbers may be left out.
func newNumbersWorld(choose func(int) int, b singleBroken) *singleWorld {
	w := newSingleWorld(choose, b)
	reserves, given := 20, map[string]bool{}
	for i := range 4 {
		var mark value.Mark
		w.add(fmt.Sprint("client ", i), func() claimtest.Single {
			if reserves == 0 {
				return nil
			}
			reserves--
			return value.NewChange(value.ChangeConfig{Path: modelValue, Initial: []byte("0"), Mark: claim.Join(modelValue, fmt.Sprint("_m_", i)), Repeatable: true}, mark)
		}, func(m claimtest.Single) {
			c := m.(*value.Change)
			mark = c.Mark()
			switch sum := string(c.Value()); {
			case c.Outcome() == claim.Unclear && !c.Leaving:
				w.violated("%s may have been reserved or not", sum)
			case c.Outcome() != claim.Succeeded:
			case given[sum]:
				w.violated("%s was reserved twice", sum)
			default:
				given[sum] = true
			}
		})
	}
	return w
}

// TestNumbersUnderFaults checks that no number is given out twice, and that a client always knows whether
// it has a number.
func TestNumbersUnderFaults(t *testing.T) {
	history := func(b singleBroken) func(uint64) *singleWorld {
		return func(seed uint64) *singleWorld {
			w := newNumbersWorld(seededChoice(seed), b)
			for n := 0; n < 1500 && w.wrong == ""; n++ {
				w.act()
			}
			if w.wrong == "" {
				w.settle()
			}
			return w
		}
	}
	for seed := range uint64(claimtest.Seeds / 4) {
		if w := history(singleBroken{})(seed); w.wrong != "" {
			t.Logf("seed %d", seed)
			w.fail(t)
		}
	}
	noticed(t, history(singleBroken{loose: true}))
}

func seededChoice(seed uint64) func(int) int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(n int) int { return r.IntN(n) }
}
