package sim

import "slices"

// Shrink removes from a failing run what the failure does not need: faults, first many at a
// time and then one by one, and machines. It plays at most the given number of runs, and
// returns the smallest one that breaks the same rule.
func Shrink(f *Failure, runs int) *Failure {
	s := shrinker{best: f, runs: runs}
	o := f.Options
	o.Acts = append([]Act{}, f.Acts...)
	if !s.try(o) {
		return f // with a list of faults in place of the random source, the run goes another way
	}
	for smaller := true; smaller && s.runs > 0; {
		smaller = s.dropMachines() || s.dropKinds() || s.dropActs()
	}
	return s.best
}

type shrinker struct {
	best *Failure
	runs int
}

// try plays a run with other options. It returns true if the run breaks the same rule.
func (s *shrinker) try(o Options) bool {
	if s.runs == 0 {
		return false
	}
	s.runs--
	o.Acts = slices.DeleteFunc(slices.Clone(o.Acts), func(a Act) bool { return a.onServers() && max(a.A, a.B) > o.servers() }) // it has no effect
	_, err := Run(o)
	f, failed := err.(*Failure)
	if !failed || f.Rule != s.best.Rule {
		return false
	}
	f.Options.Acts = o.Acts
	f.Options.Events = min(o.Events, f.Events)
	s.best = f
	return true
}

// dropActs removes faults, at first half of them at a time.
func (s *shrinker) dropActs() (smaller bool) {
	for size := max(1, len(s.best.Options.Acts)/2); size > 0; size /= 2 {
		for from := 0; from < len(s.best.Options.Acts); {
			o := s.best.Options
			o.Acts = slices.Delete(slices.Clone(o.Acts), from, min(from+size, len(o.Acts)))
			if o.Acts == nil {
				o.Acts = []Act{}
			}
			if s.try(o) {
				smaller = true
			} else {
				from += size
			}
		}
	}
	return smaller
}

// dropKinds turns off options that make the ensemble more complicated.
func (s *shrinker) dropKinds() (smaller bool) {
	if o := s.best.Options; o.Lasting != NoLasting {
		o.Lasting = NoLasting
		smaller = s.try(o)
	}
	for _, kind := range []func(o *Options) *int{
		func(o *Options) *int { return &o.Compatible },
		func(o *Options) *int { return &o.Groups },
		func(o *Options) *int { return &o.Moves },
		func(o *Options) *int { return &o.Reconfig },
		func(o *Options) *int { return &o.LocalSessions },
		func(o *Options) *int { return &o.ReadOnly },
		func(o *Options) *int { return &o.Busy },
		func(o *Options) *int { return &o.Racks },
		func(o *Options) *int { return &o.Rot },
		func(o *Options) *int { return &o.Lies },
		func(o *Options) *int { return &o.Priorities },
		func(o *Options) *int { return &o.Careless },
		func(o *Options) *int { return &o.Focus },
	} {
		o := s.best.Options
		if n := kind(&o); *n > 0 {
			*n = -1
			smaller = s.try(o) || smaller
		}
	}
	return smaller
}

// dropMachines removes candidates, clients, observers and voters.
func (s *shrinker) dropMachines() bool {
	for _, less := range []func(o *Options) bool{
		func(o *Options) bool { return fewer(&o.Candidates, 0) },
		func(o *Options) bool { return fewer(&o.Clients, 1) },
		func(o *Options) bool { return fewer(&o.Observers, 0) },
		func(o *Options) bool { return o.Compatible <= 0 && fewer(&o.Voters, votersMin) },
	} {
		before := s.best.Options
		if o := before; less(&o) && s.try(o) && s.best.Options.machines() < before.machines() {
			return true
		}
	}
	return false
}

// machines returns the number of machines in the options.
func (o *Options) machines() int {
	return max(o.Candidates, 0) + max(o.Clients, 0) + max(o.Observers, 0) + o.Voters
}

// fewer decreases a number by one; -1 stands for none. It returns false if the number is
// already at its least.
func fewer(n *int, least int) bool {
	if *n <= least {
		return false
	}
	if *n--; *n == 0 {
		*n = -1
	}
	return true
}
