# SPDX-License-Identifier: Apache-2.0
# A chain of subs over three files, through most ways by which Perl and C call each other, that ends in
# a loop; and other modes, see bench/workloads/README.md. Says what the chain is as caller() has it, then
# "ready" (tests/lang/check.h).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Shop::Cart;
use Shop::Report;

my $mode = shift // 'chain';

sub enter {
	my $cart = Shop::Cart->new(\&Shop::Report::leaf);
	return $cart->total(3);
}

# Never twice the same closure: each is freed before anybody asks for its name.
sub closures {
	Shop::Report::places(['<top-level>', 1, 99], ['main::closures', 20, 31], ['main::__ANON__', 23, 27]);
	for (my $turn = 0;; $turn++) {
		my $run = sub {
			my $sum = $turn;
			$sum = ($sum * 31 + $_) % 65521 for 1 .. 200;
			return $sum;
		};
		$run->();
	}
	return;
}

# Each text has its own number, and is freed when it is through.
sub texts {
	Shop::Report::places(['<top-level>', 1, 99], ['main::texts', 34, 40], ['(eval)', 1, 1]);
	for (my $turn = 0;; $turn++) {
		eval 'my $sum = $turn; $sum = ($sum * 31 + $_) % 65521 for 1 .. 200; $sum';
	}
	return;
}

# Mostly between calls.
sub fib {
	my ($n) = @_;
	return $n < 2
	    ? $n
	    : fib($n - 1) + fib($n - 2);
}

sub calls {
	Shop::Report::places(['<top-level>', 1, 99], ['main::calls', 50, 56], ['main::fib', 43, 48]);
	while (1) {
		fib(10);
		fib(1) for 1 .. 1000;
	}
}

# Warnings, signals; sort and a regular expression call code that ends in a call.
our ($left, $right) = (2, 1);

sub corners {
	local $SIG{__WARN__} = sub { in_text() };
	warn "now\n";
	return;
}

sub in_text {
	return 'x' =~ /x(?{ in_regexp() })/;
}

sub in_regexp {
	my @sorted = sort { in_sort() } $left, $right;
	return @sorted;
}

sub in_sort {
	local $SIG{ALRM} = sub { Shop::Report::leaf() };
	kill ALRM => $$;
	return 0;
}

my %modes = (
	chain => \&enter, closures => \&closures, texts => \&texts, calls => \&calls,
	corners => \&corners
);
if ($mode eq 'threads') {
	require threads;
	my @threads = map { threads->create(\&enter) } 1 .. 3;
	$_->join for @threads;
}
$modes{$mode}->();
