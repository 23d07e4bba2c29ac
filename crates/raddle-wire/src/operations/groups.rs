//! The lines of the table, sorted by the kind of object that they concern.
//!
//! A match over events that means one kind of object names the events of that kind one by one and the other kinds as wholes. A new
//! line then stops the compiler exactly where its kind is treated, and nowhere else; a `_` arm would have stopped it nowhere.

/// Puts each line into the list of its kind, one line a round, then makes a macro of the lists.
macro_rules! sort {
    (
        events { $(
            $(#[$meta:meta])*
            $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
            $segment:tt $step:tt $(/ $half:tt)? { $($of_object:tt)* } { $($of_argument:tt)* } $($text:ident)?;
        )* }
        bare { $(
            $(#[$bare_meta:meta])*
            $bare:ident = $bare_number:literal $bare_word:literal $bare_object:ident $bare_effect:ident $bare_blocks:tt
            $bare_outcome:ident $bare_order:ident $bare_segment:tt $bare_step:tt;
        )* }
        $($rest:tt)*
    ) => {
        sort! { @each {} {} {} {} {} {} {} {} {} {} {} $($object $name)* $($bare_object $bare)* }
    };
    (@each {$($list:tt)*} $t:tt $l:tt $c:tt $b:tt $s:tt $o:tt $f:tt $a:tt $g:tt $h:tt Nothing $name:ident $($rest:tt)*) => {
        sort! { @each {$($list)* $name} $t $l $c $b $s $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt {$($list:tt)*} $l:tt $c:tt $b:tt $s:tt $o:tt $f:tt $a:tt $g:tt $h:tt Thread $name:ident $($rest:tt)*) => {
        sort! { @each $n {$($list)* $name} $l $c $b $s $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt {$($list:tt)*} $c:tt $b:tt $s:tt $o:tt $f:tt $a:tt $g:tt $h:tt Lock $name:ident $($rest:tt)*) => {
        sort! { @each $n $t {$($list)* $name} $c $b $s $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt {$($list:tt)*} $b:tt $s:tt $o:tt $f:tt $a:tt $g:tt $h:tt Condition $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l {$($list)* $name} $b $s $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt {$($list:tt)*} $s:tt $o:tt $f:tt $a:tt $g:tt $h:tt Barrier $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c {$($list)* $name} $s $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt {$($list:tt)*} $o:tt $f:tt $a:tt $g:tt $h:tt Semaphore $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b {$($list)* $name} $o $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt $s:tt {$($list:tt)*} $f:tt $a:tt $g:tt $h:tt Once $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b $s {$($list)* $name} $f $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt $s:tt $o:tt {$($list:tt)*} $a:tt $g:tt $h:tt Futex $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b $s $o {$($list)* $name} $a $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt $s:tt $o:tt $f:tt {$($list:tt)*} $g:tt $h:tt Annotated $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b $s $o $f {$($list)* $name} $g $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt $s:tt $o:tt $f:tt $a:tt {$($list:tt)*} $h:tt Signal $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b $s $o $f $a {$($list)* $name} $h $($rest)* }
    };
    (@each $n:tt $t:tt $l:tt $c:tt $b:tt $s:tt $o:tt $f:tt $a:tt $g:tt {$($list:tt)*} Channel $name:ident $($rest:tt)*) => {
        sort! { @each $n $t $l $c $b $s $o $f $a $g {$($list)* $name} $($rest)* }
    };
    (@each {$($n:ident)*} {$($t:ident)*} {$($l:ident)*} {$($c:ident)*} {$($b:ident)*} {$($s:ident)*} {$($o:ident)*} {$($f:ident)*} {$($a:ident)*} {$($g:ident)*} {$($h:ident)*}) => {
        /// A pattern: the events about one kind of object ([`ObjectKind`](crate::operations::ObjectKind)), as variants of the
        /// enumeration that is called `Op` where the pattern stands.
        #[macro_export]
        macro_rules! operations_about {
            (Nothing) => { $(Op::$n { .. })|* };
            (Thread) => { $(Op::$t { .. })|* };
            (Lock) => { $(Op::$l { .. })|* };
            (Condition) => { $(Op::$c { .. })|* };
            (Barrier) => { $(Op::$b { .. })|* };
            (Semaphore) => { $(Op::$s { .. })|* };
            (Once) => { $(Op::$o { .. })|* };
            (Futex) => { $(Op::$f { .. })|* };
            (Annotated) => { $(Op::$a { .. })|* };
            (Signal) => { $(Op::$g { .. })|* };
            (Channel) => { $(Op::$h { .. })|* };
        }
    };
}

crate::operation_table!(sort);
