// Command karpenter-recorder runs the scheduler and the launch filters of the real Karpenter with its AWS provider,
// offline, on scenarios and records what they decide.
//
// It builds the providers as Karpenter's own tests do, on the fakes that ship with the AWS provider: the instance types
// come from a CSV file, the prices from the same file, and what would be sent to EC2 is read from the fake's CreateFleet.
package main

import (
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "karpenter-recorder:", err)
	os.Exit(1)
}

func readRows(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	rows := make([]map[string]string, 0, len(records))
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// recorded is a file of the recorder: Scenario is kept byte for byte in meaning, so that keys unknown here survive.
type recorded struct {
	Scenario json.RawMessage `json:"scenario"`
	Decision *Decision       `json:"decision,omitempty"`
	// Alternatives are further answers of the same code on the same input: the order of the instance types is a map's
	// in Karpenter, and it decides price ties at the 60th place. Absent where every run agreed.
	Alternatives []*Decision       `json:"alternatives,omitempty"`
	Reasons      map[string]string `json:"reasons,omitempty"`
}

func readScenario(path string) (*recorded, *Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	rec := &recorded{}
	if err := json.Unmarshal(data, rec); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if rec.Scenario == nil {
		rec.Scenario = data
	}
	sc := &Scenario{}
	if err := json.Unmarshal(rec.Scenario, sc); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return rec, sc, nil
}

func canonical(d *Decision) string {
	claims := make([]string, 0, len(d.NodeClaims))
	for _, c := range d.NodeClaims {
		b, _ := json.Marshal(c)
		claims = append(claims, string(b))
	}
	sort.Strings(claims)
	u, _ := json.Marshal(d.Unschedulable)
	e, _ := json.Marshal(d.ExistingNodes)
	return strings.Join(claims, "\n") + string(u) + string(e)
}

func main() {
	catalog := flag.String("catalog", "instance-types.us-east-1.csv", "CSV of instance types")
	out := flag.String("out", "", "folder to write NAME.json to; stdout if empty")
	order := flag.String("order", "random", "order of the instance types that the provider lists: random (as Karpenter) or name")
	runs := flag.Int("runs", 1, "runs of each scenario; answers that differ are recorded as alternatives")
	check := flag.Bool("check", false, "compare with the decision in the file instead of writing")
	labels := flag.Bool("labels", false, "print the labels and allocatable of every instance type as JSON, and stop")
	skip := flag.Bool("skip-existing", false, "leave out scenarios whose output exists")
	flag.Parse()
	rows, err := readRows(*catalog)
	if err != nil {
		fail(err)
	}
	world, err := NewWorld(rows)
	if err != nil {
		fail(err)
	}
	if *labels {
		if err := world.PrintLabels(os.Stdout); err != nil {
			fail(err)
		}
		return
	}
	differs := 0
	for _, path := range flag.Args() {
		target := filepath.Join(*out, filepath.Base(path))
		if *skip && *out != "" {
			if _, err := os.Stat(target); err == nil {
				continue
			}
		}
		rec, sc, err := readScenario(path)
		if err != nil {
			fail(err)
		}
		var answers []*Decision
		seen := map[string]bool{}
		for i := 0; i < *runs; i++ {
			runOrder := *order
			if i == 0 && *runs > 1 {
				runOrder = "name"
			}
			d, reasons, err := world.Decide(sc, runOrder)
			if err != nil {
				fail(fmt.Errorf("%s: %w", path, err))
			}
			if i == 0 {
				rec.Reasons = reasons
			}
			if key := canonical(d); !seen[key] {
				seen[key] = true
				answers = append(answers, d)
			}
		}
		if *check {
			same := false
			for _, d := range answers {
				same = same || canonical(d) == canonical(rec.Decision)
			}
			fmt.Printf("%s\t%v\tanswers=%d\n", filepath.Base(path), map[bool]string{true: "equal", false: "DIFFERENT"}[same], len(answers))
			if !same {
				differs++
				explainDifference(rec.Decision, answers[0])
			}
			continue
		}
		rec.Decision = answers[0]
		rec.Alternatives = answers[1:]
		data, err := json.Marshal(rec)
		if err != nil {
			fail(err)
		}
		if *out == "" {
			fmt.Println(string(data))
		} else if err := os.WriteFile(target, data, 0o644); err != nil {
			fail(err)
		}
	}
	if differs > 0 {
		fmt.Println("different:", differs)
		os.Exit(2)
	}
}

func explainDifference(want, got *Decision) {
	if !reflect.DeepEqual(want.Unschedulable, got.Unschedulable) {
		fmt.Println("  unschedulable want", want.Unschedulable, "got", got.Unschedulable)
	}
	line := func(d *Decision) []string {
		var out []string
		for _, c := range d.NodeClaims {
			b, _ := json.Marshal(c.Pods)
			out = append(out, fmt.Sprintf("%s %s types=%d launch=%s/%d %s", c.NodePool, b, len(c.InstanceTypes), c.Launch.CapacityType, len(c.Launch.InstanceTypes), c.Launch.Error))
		}
		sort.Strings(out)
		return out
	}
	w, g := line(want), line(got)
	for i := 0; i < len(w) || i < len(g); i++ {
		a, b := "-", "-"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			fmt.Println("  want", a, "\n  got ", b)
		}
	}
	for i := range want.NodeClaims {
		if i < len(got.NodeClaims) && !reflect.DeepEqual(want.NodeClaims[i].Launch.InstanceTypes, got.NodeClaims[i].Launch.InstanceTypes) {
			fmt.Println("  claim", i, "only want", minus(want.NodeClaims[i].Launch.InstanceTypes, got.NodeClaims[i].Launch.InstanceTypes),
				"only got", minus(got.NodeClaims[i].Launch.InstanceTypes, want.NodeClaims[i].Launch.InstanceTypes))
			break
		}
	}
}

func minus(a, b []string) []string {
	in := map[string]bool{}
	for _, x := range b {
		in[x] = true
	}
	var out []string
	for _, x := range a {
		if !in[x] {
			out = append(out, x)
		}
	}
	return out
}
