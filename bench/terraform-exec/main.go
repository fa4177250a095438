// The established way, as a peer to measure against: a dispatcher that turns each event into a fresh folder of
// generated Terraform files, then runs init, plan, apply and output through terraform-exec, and keeps the state.
//
// It does what such an executor does and no more: no journal, no fencing, no tenants. Prints one line of JSON.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
)

type executor struct {
	binary string
	work   string
	states string
	source string
	// The variables of every event, as JSON; EVENT stands for the event's number.
	variables string
}

// execute processes one event from start to end, as if it had just been taken from the events table.
func (e *executor) execute(ctx context.Context, event string) error {
	dir := filepath.Join(e.work, "event-"+event)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(e.source), 0o600); err != nil {
		return err
	}
	variables := strings.ReplaceAll(e.variables, "EVENT", event)
	if err := os.WriteFile(filepath.Join(dir, "terraform.tfvars.json"), []byte(variables), 0o600); err != nil {
		return err
	}
	tf, err := tfexec.NewTerraform(dir, e.binary)
	if err != nil {
		return err
	}
	if err := tf.Init(ctx, tfexec.Upgrade(true)); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	stateFile := filepath.Join(dir, "terraform.tfstate")
	if state, err := os.ReadFile(filepath.Join(e.states, event)); err == nil {
		if err := os.WriteFile(stateFile, state, 0o600); err != nil {
			return err
		}
	}
	planFile := filepath.Join(dir, "tfplan")
	changes, err := tf.Plan(ctx, tfexec.Out(planFile))
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if changes {
		if err := tf.Apply(ctx, tfexec.DirOrPlan(planFile)); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	outputs, err := tf.Output(ctx)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	if len(outputs) == 0 {
		return fmt.Errorf("event %s: no outputs", event)
	}
	state, err := os.ReadFile(stateFile)
	if err != nil {
		return err
	}
	return saveDurably(filepath.Join(e.states, event), state)
}

// saveDurably stands for the row in the database that the dispatcher would write.
func saveDurably(path string, content []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

func main() {
	binary := flag.String("tofu", "", "the tofu or terraform binary")
	config := flag.String("config", "", "the CLI configuration file (a provider mirror)")
	template := flag.String("template", "", "the main.tf of every event")
	variables := flag.String("variables", "", "a file with the variables of every event; EVENT is its number")
	workers := flag.Int("workers", 2, "events at once")
	seconds := flag.Int("seconds", 30, "how long to take new events")
	flag.Parse()

	source, err := os.ReadFile(*template)
	if err != nil {
		log.Fatal(err)
	}
	work, err := os.MkdirTemp("", "terraform-exec-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(work)
	states := filepath.Join(work, "states")
	if err := os.Mkdir(states, 0o700); err != nil {
		log.Fatal(err)
	}
	os.Setenv("TF_CLI_CONFIG_FILE", *config)
	os.Setenv("CHECKPOINT_DISABLE", "1")
	e := &executor{binary: *binary, work: work, states: states, source: string(source), variables: `{"event": "EVENT"}`}
	if *variables != "" {
		given, err := os.ReadFile(*variables)
		if err != nil {
			log.Fatal(err)
		}
		e.variables = string(given)
	}

	var (
		group     sync.WaitGroup
		next      atomic.Int64
		mutex     sync.Mutex
		latencies []float64
	)
	begin := time.Now()
	deadline := begin.Add(time.Duration(*seconds) * time.Second)
	for range *workers {
		group.Go(func() {
			for time.Now().Before(deadline) {
				started := time.Now()
				if err := e.execute(context.Background(), fmt.Sprint(next.Add(1))); err != nil {
					log.Fatal(err)
				}
				mutex.Lock()
				latencies = append(latencies, time.Since(started).Seconds())
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin).Seconds()
	slices.Sort(latencies)
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"runs":    len(latencies),
		"seconds": elapsed,
		"p50":     latencies[len(latencies)/2],
	})
}
