package sim

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// commanded returns the options that a command line sets.
func commanded(t *testing.T, command string) (o Options) {
	t.Helper()
	rest, ok := strings.CutPrefix(command, "bellwether-sim --seed ")
	if _, err := fmt.Sscan(rest, &o.Seed); !ok || err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`--(\S+) ('[^']*'|\S+)`).FindAllStringSubmatch(rest, -1) {
		said[m[1]] = strings.Trim(m[2], "'")
	}
	for _, f := range Fields {
		if text, ok := said[f.Name]; ok {
			if err := f.Set(&o, text); err != nil {
				t.Fatalf("%s: %s: %v", command, f.Name, err)
			}
			delete(said, f.Name)
		}
	}
	if len(said) > 0 {
		t.Fatalf("%s: nobody knows %v", command, said)
	}
	return o
}

// TestEachOptionHasAName checks that each option has a name on the command line, and that
// each name sets an option.
func TestEachOptionHasAName(t *testing.T) {
	options := reflect.TypeFor[Options]()
	for i := range options.NumField() {
		f := options.Field(i)
		if !f.IsExported() || f.Name == "Seed" || f.Name == "Trace" {
			continue
		}
		var o Options
		switch v := reflect.ValueOf(&o).Elem().Field(i); f.Type.Kind() {
		case reflect.String:
			v.SetString(map[string]string{"Recipe": string(client.DoubleBarrier), "Lasting": string(Mute)}[f.Name])
		case reflect.Uint32:
			v.SetUint(counterLeast)
		case reflect.Slice:
			v.Set(reflect.ValueOf([]Act{{At: 1, Kind: Kill, A: 2}}))
		default:
			v.SetInt(max(1, map[string]int64{"Voters": voteLeast, "TickMS": tickLeastMS}[f.Name]))
		}
		names := 0
		for _, x := range Fields {
			var read Options
			if text := x.Get(&o); text != x.Get(&Options{}) {
				names++
				if err := x.Set(&read, text); err != nil || !reflect.DeepEqual(read, o) {
					t.Errorf("%s %q gives %+v, %v", x.Name, text, read, err)
				}
			}
		}
		if names != 1 {
			t.Errorf("%s has %d names", f.Name, names)
		}
	}
}

// TestFieldsRefuseBadValues checks that values which cannot be simulated are refused, and that the
// refusal does not count as a failure.
func TestFieldsRefuseBadValues(t *testing.T) {
	refused := map[string][]string{
		"servers": {"-1", "1", "32", "three"}, "tick-ms": {"1", "19", "3600001"}, "counter-max": {"1", "19", "-1", "4294967296"},
		"events": {"-1"}, "observers": {"-2"}, "groups": {"2"}, "recipe": {"nothing"}, "faults": {"nothing"},
	}
	for _, f := range Fields {
		for _, text := range refused[f.Name] {
			var o Options
			if err := f.Set(&o, text); err == nil || !reflect.DeepEqual(o, Options{}) {
				t.Errorf("%s %s gives %+v, %v", f.Name, text, o, err)
			}
		}
	}
}

// TestCommandContainsOnlyWhatTheSeedDoesNotDraw checks that a command contains the options that its
// seed would not draw, and no others.
func TestCommandContainsOnlyWhatTheSeedDoesNotDraw(t *testing.T) {
	all := func(o Options) Options { return drawn(o, machine.NewRandom(o.Seed).Fork()) }
	for seed := range uint64(500) {
		o := Options{Seed: seed + 1}
		if c := all(o).Command(); c != fmt.Sprint("bellwether-sim --seed ", seed+1) {
			t.Errorf("drawn: %s", c)
		}
		other := all(Options{Seed: seed + 1000}) // all options that another seed draws
		other.Seed, other.Events, other.Keep, other.TermMS = seed+1, int(seed)+1, int(seed%3), int64(seed%2)
		other.Acts = [][]Act{nil, {}, {{At: int64(seed), Kind: SetClock, A: -1, Value: -5}, {At: 7_000_001, Kind: Block, A: 1, B: 2}}}[seed%3]
		if got, want := all(commanded(t, other.Command())), all(other); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngives %+v\nnot   %+v", other.Command(), got, want)
		}
	}
}

// TestFaultsAreReadAsPrinted checks that each kind of fault is read as it is printed, with
// the least and the largest amount, on each kind of machine.
func TestFaultsAreReadAsPrinted(t *testing.T) {
	var acts []Act
	for i, f := range forms {
		for _, a := range []int{-99, -1, 0, 1, 9, machinesMax} {
			if !f.on.has(a) {
				continue
			}
			for _, value := range []int64{f.least, f.most} {
				act := Act{At: int64(i) * 1_234_567, Kind: f.kind, A: a, Value: value}
				acts = append(acts, act)
				if act.B = -2; f.second {
					acts = append(acts, act)
				}
			}
		}
	}
	if got, err := ParseActs(formatActs(acts)); err != nil || !reflect.DeepEqual(got, acts) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestWrongFaultsAreRefused checks that the error of a wrong list of faults says where the
// list is wrong, and what is allowed there.
func TestWrongFaultsAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"kill 1", `character 1, at "kill": allowed here is the second at which a fault occurs`},
		{"-1 kill 1", `character 1, at "-1": allowed here is the second`},
		{"NaN kill 1", `character 1, at "NaN": allowed here is the second`},
		{"1000000 kill 1", `character 1, at "1000000": allowed here is the second`},
		{";", `character 1, at the end: allowed here is the first fault, or "none" for no faults`},
		{"", `character 1, at the end: allowed here is the first fault, or "none" for no faults`},
		{"1;;", "character 2, at the end: allowed here is a kind of fault"},
		{"1 kill 1;;", "character 10, at the end: allowed here is the second"},
		{"0x1p3 kill 1", `character 1, at "0x1p3": allowed here is the second`},
		{"1e3 kill 1", `character 1, at "1e3": allowed here is the second`},
		{"1_0 kill 1", `character 1, at "1_0": allowed here is the second`},
		{"1 kill +1", `character 8, at "+1": allowed here is the number of a server`},
		{"1 slow 1 2 =+5", `character 12, at "=+5": allowed here is = and an amount`},
		{"1 slow 1 1 =5", `character 10, at "1": allowed here is the number of another machine than 1`},
		{"1 cut 3 3", `character 9, at "3": allowed here is the number of another machine than 3`},
		{"1 kill 1;", "character 10, at the end: allowed here is the second"},
		{"1 kill 1; 2 explode 1", `character 13, at "explode": allowed here is a kind of fault, which is one of: kill, power off, `},
		{"1 power 1", `character 3, at "power": allowed here is a kind of fault`},
		{"1", "character 2, at the end: allowed here is a kind of fault"},
		{"1 kill", "character 7, at the end: allowed here is the number of a server, 1 to 31 or a client, -1 to -99"},
		{"1 kill x1", `character 8, at "x1": allowed here is the number of a server`},
		{"1 kill 32", `character 8, at "32": allowed here is the number of a server, 1 to 31`},
		{"1 start -1", `character 9, at "-1": allowed here is the number of a server, 1 to 31`},
		{"1 hang 1", `character 8, at "1": allowed here is the number of a client, -1 to -99`},
		{"1 calm 1", `character 8, at "1": allowed here is the number of no machine, 0`},
		{"1 kill 1 2", `character 10, at "2": allowed here is the end of the fault`},
		{"1 cut 1 0", `character 9, at "0": allowed here is the number of a server`},
		{"1 cut 1 2 3", `character 11, at "3": allowed here is the end of the fault`},
		{"1 kill 1 =5", `character 10, at "=5": allowed here is the end of the fault`},
		{"1 crash in 1", "character 13, at the end: allowed here is = and an amount from 1 to 1000000"},
		{"1 crash in 1 =0", `character 14, at "=0": allowed here is = and an amount from 1 to 1000000`},
		{"1 filter 1 =4", `character 12, at "=4": allowed here is = and an amount from 1 to 3`},
		{"1 slow disk 1 =x", `character 15, at "=x": allowed here is = and an amount from 0 to 3600000000`},
		{"1 slow disk 1 5", `character 15, at "5": allowed here is = and an amount`},
		{"1 slow disk 1 =5 =6", `character 18, at "=6": allowed here is the end of the fault`},
		{"1 slow disk 1 =9223372036854775808", `character 15, at "=9223372036854775808": allowed here is = and an amount`},
	} {
		if got, err := ParseActs(c.text); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q gives %v, %v; want %s", c.text, got, err, c.want)
		}
	}
	many := strings.TrimSuffix(strings.Repeat("1 kill 1;", actsMax+1), ";")
	if _, err := ParseActs(many); err == nil || !strings.Contains(err.Error(), "allowed are at most 10000 faults") {
		t.Errorf("%d faults: %v", actsMax+1, err)
	}
}

// TestServersThatTheEnsembleLacks checks that faults of servers which a run cannot have are refused, and that those of
// servers which may be added are not.
func TestServersThatTheEnsembleLacks(t *testing.T) {
	for _, c := range []struct {
		options Options
		faults  string
		want    string
	}{
		{Options{}, "1 kill 3; 2 kill 4", ""},
		{Options{}, "1 kill 3; 2 kill 5", `fault 2, "2.000000 kill 5": the ensemble of seed 1 has no server 5; allowed are 1 to 4`},
		{Options{}, "1 block 1 5", "has no server 5"},
		{Options{}, "1 cut 1 -5; 1 kill -9; 1 rack off 3; 1 calm 0", ""},
		{Options{}, "1 enrol 5 =1; 2 start 5", ""},
		{Options{Reconfig: 1}, "1 kill 10; 2 recruit 11; 2 reconfigure 11", ""},
		{Options{Reconfig: 1}, "1 kill 11", "allowed are 1 to 10"},
		{Options{Moves: 1}, "1 kill 10", ""},
	} {
		acts, err := ParseActs(c.faults)
		if err != nil {
			t.Fatal(err)
		}
		o := c.options
		o.Seed, o.Voters, o.Observers, o.Acts = 1, 3, 1, acts
		if o.Moves == 0 {
			o.Moves = -1
		}
		if o.Reconfig == 0 {
			o.Reconfig = -1
		}
		if err := o.CheckActs(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.faults, err, c.want)
		}
	}
}

// TestWrongNumbersAreRefused checks that the error of a wrong seed or number says where it
// is wrong, and what is allowed.
func TestWrongNumbersAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "character 1, at the end: allowed here is a number from 0 to 18446744073709551615"},
		{"12x4", `character 3, at "x4": allowed here is a number from 0`},
		{"-1", `character 1, at "-1": allowed here is a number from 0`},
		{"18446744073709551616", `character 1, at "18446744073709551616": allowed here is`},
	} {
		if got, err := ParseSeed(c.text); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q gives %d, %v; want %s", c.text, got, err, c.want)
		}
	}
	if got, err := ParseSeed("18446744073709551615"); err != nil || got != 1<<64-1 {
		t.Errorf("the largest seed gives %d, %v", got, err)
	}
	for _, f := range Fields {
		if f.Name == "events" {
			if err := f.Set(new(Options), "5e3"); err == nil || err.Error() != `character 2, at "e3": it is a number from 0 to 1000000000` {
				t.Errorf("events: %v", err)
			}
		}
	}
}

// TestFaultsCanBeGivenAsText checks that a run whose faults are given goes the same way as the run
// that drew them. A few runs are allowed to differ, because something else happens in the
// same microsecond.
func TestFaultsCanBeGivenAsText(t *testing.T) {
	const seeds = 8
	same := 0
	for seed := range uint64(seeds) {
		s := New(Options{Seed: seed + 1, Events: 4000})
		s.finish()
		o := s.opt
		o.Acts = s.nemesis.done
		r, err := Run(o)
		if err != nil {
			t.Errorf("%s: %v", o.Command(), err)
		}
		if r.Digest == s.result().Digest {
			same++
		}
	}
	if same < seeds*3/4 {
		t.Errorf("of %d runs, %d go the same way when their faults are said", seeds, same)
	}
}

// panics is a checker that panics by itself.
type panics struct{ n int }

func (*panics) Name() string { return "Panics" }

func (p *panics) See(any) string {
	if p.n++; p.n == 500 {
		panic("out of order")
	}
	return ""
}

// TestPanicReportsItsSeed checks that a panic is reported as a broken rule is: with its seed
// and its place, and with the same text when the run is repeated.
func TestPanicReportsItsSeed(t *testing.T) {
	var reports [2]string
	for i := range reports {
		_, err := Run(Options{Seed: 77, Voters: 3, rule: func() check.Checker { return new(panics) }})
		f, ok := err.(*Failure)
		if !ok {
			t.Fatal(err)
		}
		reports[i] = f.Report(20)
	}
	for _, want := range []string{"seed 77 breaks NoPanic: out of order", "panic in bellwether/internal/sim.(*panics).See", "sim --seed 77 --servers 3"} {
		if !strings.Contains(reports[0], want) {
			t.Errorf("%q is missing in\n%s", want, reports[0])
		}
	}
	if reports[0] != reports[1] || strings.Count(reports[0], "\n") > 50 {
		t.Errorf("%s\nand\n%s", reports[0], reports[1])
	}
}
