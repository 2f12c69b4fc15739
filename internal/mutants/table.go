package mutants

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// tally counts the mutants of one package and set.
type tally struct {
	all, invalid, equivalent, unseen int
	unit, simulator                  counted
}

// counted counts the mutants that a score has judged, and those that it could judge and has not.
type counted struct{ judged, killed, open int }

func (c *counted) add(r Result, ok bool) {
	switch {
	case !ok:
		c.open++
	case r.Verdict != Invalid:
		c.judged++
		if r.Verdict == Killed {
			c.killed++
		}
	}
}

func (c *counted) sum(o counted) {
	c.judged, c.killed, c.open = c.judged+o.judged, c.killed+o.killed, c.open+o.open
}

// percent returns the share of killed mutants, rounded down.
func (c counted) percent() string {
	if c.judged == 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", 100*c.killed/c.judged)
}

func (c counted) String() string {
	switch {
	case c.judged == 0:
		return "–"
	case c.open > 0:
		return fmt.Sprintf("%d of %d, %d not judged", c.killed, c.judged, c.open)
	}
	return fmt.Sprintf("%d of %d", c.killed, c.judged)
}

func (t *tally) add(o *tally) {
	t.all, t.invalid, t.equivalent = t.all+o.all, t.invalid+o.invalid, t.equivalent+o.equivalent
	t.unseen += o.unseen
	t.unit.sum(o.unit)
	t.simulator.sum(o.simulator)
}

// Table returns the scores by set and package, and the semantic mutants that no unit test
// kills, in Markdown. all holds the semantic mutants; generated ones in it do not matter.
// equivalent and unseen hold the reasons by mutant. The table of the generated mutants contains only
// those that were judged, so that it changes with the results and not with each change of
// the code.
func Table(all []Mutant, equivalent, unseen map[string]string, results Results) string {
	var b strings.Builder
	for _, set := range []Set{Semantic, Generated} {
		fmt.Fprintf(&b, "\n| %s mutants of | all | do not compile | equivalent | killed by unit tests | score | not simulated | killed by the simulator | score |\n", set)
		b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
		names := semanticNames(all)
		if set == Generated {
			names = generatedNames(equivalent, results)
		}
		rows := tallies(names, equivalent, unseen, results)
		sum := new(tally)
		for _, pkg := range slices.Sorted(maps.Keys(rows)) {
			sum.add(rows[pkg])
			writeRow(&b, "`"+strings.TrimPrefix(pkg, "internal/")+"`", rows[pkg])
		}
		writeRow(&b, "together", sum)
	}
	b.WriteString(survivors(all, equivalent, results))
	b.WriteString(simulatorSurvivors(all, equivalent, unseen, results))
	return b.String()
}

// semanticNames returns the packages of the semantic mutants by their names.
func semanticNames(all []Mutant) map[string]string {
	names := map[string]string{}
	for i := range all {
		if all[i].Set() == Semantic {
			names[all[i].Name] = all[i].Package()
		}
	}
	return names
}

// generatedNames returns the packages of the generated mutants that are equivalent or were
// judged. The name of such a mutant begins with its file.
func generatedNames(equivalent map[string]string, results Results) map[string]string {
	names := map[string]string{}
	add := func(name string) {
		if file, _, generated := strings.Cut(name, ":"); generated {
			names[name] = path.Dir(file)
		}
	}
	for name := range equivalent {
		add(name)
	}
	for name := range results {
		add(name)
	}
	return names
}

func writeRow(b *strings.Builder, name string, t *tally) {
	fmt.Fprintf(b, "| %s | %d | %d | %d | %v | %s | %d | %v | %s |\n",
		name, t.all, t.invalid, t.equivalent, t.unit, t.unit.percent(), t.unseen, t.simulator, t.simulator.percent())
}

// tallies counts mutants by package. names holds the package of each mutant.
func tallies(names, equivalent, unseen map[string]string, results Results) map[string]*tally {
	rows := map[string]*tally{}
	for name, pkg := range names {
		t := rows[pkg]
		if t == nil {
			t = new(tally)
			rows[pkg] = t
		}
		t.all++
		unit, judged := results[name][Unit]
		switch {
		case equivalent[name] != "":
			t.equivalent++
			continue
		case judged && unit.Verdict == Invalid:
			t.invalid++
			continue
		}
		t.unit.add(unit, judged)
		if !Simulated(pkg) || unseen[name] != "" {
			t.unseen++
			continue
		}
		simulated, ran := results[name][Simulator]
		t.simulator.add(simulated, ran)
	}
	return rows
}

// survivors lists the semantic mutants that no unit test kills.
func survivors(all []Mutant, equivalent map[string]string, results Results) string {
	var b strings.Builder
	for i := range all {
		m := &all[i]
		unit, judged := results[m.Name][Unit]
		if m.Set() != Semantic || equivalent[m.Name] != "" || !judged || unit.Verdict != Survived {
			continue
		}
		by := "not judged"
		switch r, ran := results[m.Name][Simulator]; {
		case ran && r.Verdict == Killed:
			by = fmt.Sprintf("%s, seed %s", r.Where, r.By)
		case ran:
			by = fmt.Sprintf("survived %s seeds", r.By)
		case !Simulated(m.Package()):
			by = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Name, m.What, by)
	}
	if b.Len() == 0 {
		return "\nNo semantic mutant that was judged survives the unit tests.\n"
	}
	return "\n| semantic mutant that survives the unit tests | what it breaks | simulator |\n|---|---|---|\n" + b.String()
}

// simulatorSurvivors lists the semantic mutants that the simulator has not killed, and how many
// seeds it has played.
func simulatorSurvivors(all []Mutant, equivalent, unseen map[string]string, results Results) string {
	var b strings.Builder
	for i := range all {
		m := &all[i]
		r, ran := results[m.Name][Simulator]
		if m.Set() == Semantic && equivalent[m.Name] == "" && unseen[m.Name] == "" && ran && r.Verdict == Survived {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", m.Name, m.What, r.By)
		}
	}
	if b.Len() == 0 {
		return "\nNo semantic mutant that was judged survives the simulator.\n"
	}
	return "\n| semantic mutant that survives the simulator | what it breaks | seeds |\n|---|---|---|\n" + b.String()
}
