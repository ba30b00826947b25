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
	// forecastAge is the age after which a forecast is recomputed even if its input has not
	// changed.
	forecastAge = 20 * time.Second
	// forecastPatience is the maximum time that a page waits for a new forecast. After that, the
	// page shows the previous forecast.
	forecastPatience = time.Second
	// longestForecast is the time limit for computing a forecast. It is needed because tenants
	// control the cost of a forecast by their schedules. It is long because a busy machine may give
	// the dashboard little CPU time.
	longestForecast = time.Minute
	// forecastRest is the length of the pause after computing a forecast, as a multiple of the
	// computing time. With the value 9, computing takes at most a tenth of the time. On a busy
	// machine, the computing time is the CPU time of this process meanwhile. The pauses of forecasts
	// for different periods into the future are independent.
	forecastRest = 9
	// assumedDuration is the assumed duration of a restart whose history contains no success, as in
	// kubectl tide restarts forecast.
	assumedDuration = time.Minute
)

// forecasts computes restart forecasts for the pages, without holding the lock of the pages.
// Forecasts for different periods into the future, such as 24 hours and 7 days, are independent.
// For each period, at most one computation runs at a time, followed by a pause. Meanwhile, pages
// show the previous forecast.
type forecasts struct {
	now func() time.Time
	run func(context.Context, forecast.Input) forecast.Forecast
	// patience is the maximum time that a page waits for a forecast. longest is the time limit for
	// computing a forecast.
	patience, longest time.Duration
	// processorTime returns the CPU time that this process has used.
	processorTime func() time.Duration
	// made is called when a computation ends after a page stopped waiting for the result. It may be
	// nil.
	made func()

	mu    sync.Mutex
	known map[time.Duration]*knownForecast
}

// knownForecast is the latest forecast for a period into the future, and the state of its
// computation.
type knownForecast struct {
	forecast.Forecast
	// key identifies the input from which the forecast was computed. `at` is the time of the
	// forecast, or zero if no computation has succeeded yet.
	key string
	at  time.Time
	// done is closed when the running computation ends. It is nil if no computation is running.
	// late is set if a page stopped waiting for the computation.
	done chan struct{}
	late bool
	// rests is the end of the pause after the last computation. problem is the reason why the last
	// computation failed, or "".
	rests   time.Time
	problem string
}

func newForecasts(now func() time.Time) *forecasts {
	return &forecasts{
		now: now, run: forecast.Run, patience: forecastPatience, longest: longestForecast, processorTime: processorTime,
		known: map[time.Duration]*knownForecast{},
	}
}

// shownForecast is a restart forecast that is prepared for display.
type shownForecast struct {
	forecast.Forecast
	// Known is set if a forecast is available.
	Known bool
	// `at` is the time of the forecast. old is set if the forecast's input has changed since then,
	// or if the forecast is older than forecastAge. problem is the reason why the last computation
	// failed, or "".
	at      time.Time
	old     bool
	problem string
}

// get returns the forecast for a period into the future. key identifies the forecast's input. If
// the forecast is outdated, get starts a computation and waits for it for a limited time. If recent
// is set and the last forecast is younger than recentAge, get returns that forecast without
// waiting.
func (f *forecasts) get(ctx context.Context, ahead time.Duration, key string, recent bool, input func() forecast.Input) shownForecast {
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
	if recent && !k.at.IsZero() && now.Sub(k.at) < recentAge {
		k.late, done = true, nil
	}
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

// await waits until the running computation of a forecast ends, but not longer than f.patience.
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

// make computes a forecast. If the computation exceeds the time limit, its result is discarded.
func (f *forecasts) make(ctx context.Context, k *knownForecast, key string, in forecast.Input) {
	f.mu.Lock()
	longest := f.longest
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	began, used := f.now(), f.processorTime()
	made := f.run(ctx, in)
	f.mu.Lock()
	ended := f.now()
	took := min(ended.Sub(began), f.processorTime()-used)
	if k.problem = ""; ctx.Err() != nil {
		k.problem = fmt.Sprintf("it takes longer than %s: look less far ahead, or ask kubectl tide restarts forecast", longest)
	} else {
		k.Forecast, k.key, k.at = made, key, ended
	}
	k.rests = ended.Add(forecastRest * took)
	close(k.done)
	k.done = nil
	late := k.late
	f.mu.Unlock()
	if late && f.made != nil {
		f.made()
	}
}

// note explains why a forecast is outdated or missing. It returns "" for a current forecast.
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
