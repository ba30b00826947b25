// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// AllFaults reports whether FAULTS=all is set: then all faults are injected, and not only the subset
// that runs by default.
func AllFaults() bool { return os.Getenv("FAULTS") == "all" }

// checkFaults refuses any other value of FAULTS: it would run the subset while the
// user expects something else.
func checkFaults() error {
	if value := os.Getenv("FAULTS"); value != "" && !AllFaults() {
		return fmt.Errorf("FAULTS=%q: must be all, or not given", value)
	}
	return nil
}

// Shard is the value of SHARD, the part of all faults to inject on this machine, such as 2/8, in the
// syntax of sandbox explore and fuzz. Empty means all.
func Shard() string { return os.Getenv("SHARD") }

// InShard skips a test that belongs to another shard, by the hash of its name.
func InShard(t testing.TB) {
	t.Helper()
	elsewhere, err := playedElsewhere(t.Name(), Shard())
	if err != nil {
		t.Fatal(err)
	}
	if elsewhere != "" {
		t.Skip(elsewhere)
	}
}

// playedElsewhere names the shard that a test belongs to, for the message of a skipped test; it is ""
// if the test belongs to this shard.
func playedElsewhere(name, shard string) (string, error) {
	if shard == "" {
		return "", nil
	}
	part, of, err := parseShard(shard)
	if err != nil {
		return "", err
	}
	if mine := partOf(name, of); mine != part {
		return fmt.Sprintf("SHARD=%d/%d plays it", mine, of), nil
	}
	return "", nil
}

// parseShard parses the number of a shard and the number of shards.
func parseShard(text string) (part, of int, err error) {
	if _, err := fmt.Sscanf(text, "%d/%d", &part, &of); err != nil || part < 1 || part > of || text != fmt.Sprintf("%d/%d", part, of) {
		return 0, 0, fmt.Errorf("SHARD=%q: want a part and how many there are, like 2/8", text)
	}
	return part, of, nil
}

// partOf returns the shard of a test. It depends on the name alone, so that a new test moves no other
// test to another shard.
func partOf(name string, of int) int {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	return int(sum.Sum32()%uint32(of)) + 1
}
