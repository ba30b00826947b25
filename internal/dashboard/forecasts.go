// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/term"
)

const (
	// forecastAge is how old a forecast may be if nothing has changed.
	forecastAge = 20 * time.Second
	// forecastPatience is how long a page waits for a forecast. Later it shows the last forecast.
	forecastPatience = time.Second
	// longestForecast is how long a forecast may be made. The tenants decide how long it would take.
	longestForecast = 20 * time.Second
	// forecastRest is how much longer than a forecast took the time is until the next one: they are
	// made for at most a tenth of the time.
	forecastRest = 9
	// assumedDuration is how long a restart takes that has never succeeded, as kubectl tide
	// restarts forecast assumes it.
	assumedDuration = time.Minute
)

// forecasts makes the forecasts of the pages: outside of the lock of the pages, a forecast of each length
// at a time, and for a bounded share of the time. Pages show the last forecast meanwhile.
type forecasts struct {
	now func() time.Time
	run func(context.Context, forecast.Input) forecast.Forecast
	// patience is how long a page waits, and longest how long a forecast may be made.
	patience, longest time.Duration
	// made is called when a forecast is there that a page did not wait for; nil for nothing.
	made func()

	mu    sync.Mutex
	known map[time.Duration]*knownForecast
}

// knownForecast is the last forecast of a length.
type knownForecast struct {
	forecast.Forecast
	// key is the version of its input, and at its time; zero if there is none yet.
	key string
	at  time.Time
	// done is closed when the forecast that is being made ends, nil if none is. late says that a page
	// has not waited for it.
	done chan struct{}
	late bool
	// rests is until when no other is made, and problem why the last attempt came to nothing.
	rests   time.Time
	problem string
}

func newForecasts(now func() time.Time) *forecasts {
	return &forecasts{now: now, run: forecast.Run, patience: forecastPatience, longest: longestForecast, known: map[time.Duration]*knownForecast{}}
}

// shownForecast is a forecast as a page shows it.
type shownForecast struct {
	forecast.Forecast
	// Known reports that there is a forecast.
	Known bool
	// at is when it was made, and old says that something has changed since; problem is why there
	// is no later forecast.
	at      time.Time
	old     bool
	problem string
}

// get returns the forecast of a length, of an input with a key. If needed, it makes a forecast from
// the input, and waits for it for as long as a page may.
func (f *forecasts) get(ctx context.Context, ahead time.Duration, key string, input func() forecast.Input) shownForecast {
	f.mu.Lock()
	k := f.known[ahead]
	if k == nil {
		k = &knownForecast{}
		f.known[ahead] = k
	}
	now := f.now()
	fresh := !k.at.IsZero() && k.key == key && now.Sub(k.at) < forecastAge
	starts := !fresh && k.done == nil && !now.Before(k.rests)
	if starts {
		k.done, k.late = make(chan struct{}), false
	}
	done := k.done
	f.mu.Unlock()
	if starts {
		in := input()
		go f.make(context.WithoutCancel(ctx), k, key, in)
	}
	if !fresh && done != nil {
		f.await(ctx, k, done)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return shownForecast{Forecast: k.Forecast, Known: !k.at.IsZero(), at: k.at, old: k.key != key || f.now().Sub(k.at) >= forecastAge, problem: k.problem}
}

// await waits for a forecast, but not for long.
func (f *forecasts) await(ctx context.Context, k *knownForecast, done chan struct{}) {
	patience := time.NewTimer(f.patience)
	defer patience.Stop()
	select {
	case <-done:
		return
	case <-patience.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	k.late = true
	f.mu.Unlock()
}

// make makes a forecast. A forecast that takes too long is not kept.
func (f *forecasts) make(ctx context.Context, k *knownForecast, key string, in forecast.Input) {
	f.mu.Lock()
	longest := f.longest
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	began := f.now()
	made := f.run(ctx, in)
	f.mu.Lock()
	ended := f.now()
	if k.problem = ""; ctx.Err() != nil {
		k.problem = fmt.Sprintf("it takes longer than %s: look less far ahead, or ask kubectl tide restarts forecast", longest)
	} else {
		k.Forecast, k.key, k.at = made, key, ended
	}
	k.rests = ended.Add(forecastRest * ended.Sub(began))
	close(k.done)
	k.done = nil
	late := k.late
	f.mu.Unlock()
	if late && f.made != nil {
		f.made()
	}
}

// note says that a forecast is old, or not there, and why; "" for a forecast of now.
func (s *shownForecast) note(now time.Time, local *time.Location) string {
	why := "a new one is being made"
	if s.problem != "" {
		why = s.problem
	}
	switch {
	case !s.Known && s.problem == "":
		return "The forecast is being made."
	case !s.Known:
		return "There is no forecast: " + s.problem + "."
	case s.old:
		return fmt.Sprintf("The forecast is of %s, %s ago: %s.", term.Clock(s.at, now, local), duration.HumanDuration(max(0, now.Sub(s.at))), why)
	default:
		return ""
	}
}
