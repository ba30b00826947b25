// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// saved holds findings of explore, without timelines and the output of the operator. The name of a
// file is the name of a row, a hyphen, and the number of an issue.
//
//go:embed found
var saved embed.FS

// replaySaved replays the saved findings whose names begin with one of the given names, or all of
// them if none is given, and returns an error if a finding does not come again.
func replaySaved(ctx context.Context, sandbox, dir string, names []string) error {
	files, err := saved.ReadDir("found")
	if err != nil {
		return err
	}
	var known []string
	for _, f := range files {
		known = append(known, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	chosen, err := choose(known, names)
	if err != nil {
		return err
	}
	for _, r := range rows {
		own := slices.DeleteFunc(slices.Clone(chosen), func(name string) bool { return !strings.HasPrefix(name, r.name+"-") })
		if len(own) == 0 {
			continue
		}
		where, err := r.prepare(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		for _, name := range own {
			if err := replay(ctx, sandbox, where, name+".yaml"); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// replay replays a saved finding in the directory of its row.
func replay(ctx context.Context, sandbox, dir, file string) error {
	text, err := saved.ReadFile("found/" + file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
		return err
	}
	began := time.Now()
	command := exec.CommandContext(ctx, sandbox, "replay", file)
	var report bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = dir, io.MultiWriter(&report, os.Stdout), os.Stderr
	err = command.Run()
	switch code := command.ProcessState.ExitCode(); {
	case code == 0:
		return errors.New("it is not found any more")
	case code != found:
		return err
	case strings.Contains(report.String(), "This is another problem than"):
		return errors.New("another problem was found")
	}
	fmt.Printf("%s: found again in %s\n", file, time.Since(began).Round(time.Second))
	return nil
}
