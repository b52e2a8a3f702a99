% Gives every note head, staff, bar line and bracket of an ending an id in LilyPond's SVG, and writes what the heads
% stand for into the file HEADS_FILE. The ids of bar lines and brackets say what they are: "bar :|.", "volta 1.".
% Those of staves name the score, too: "staff0-2".
% Rows are separated by tabs; times are in quarters from the start of the score:
%   tempo  score  onset  quarters-a-minute
%   head   score  number  onset  grace  duration  pitch  staff
%   tie    score  number  number
%   box    score  number  x0  x1  y0  y1     (staff spaces from the head's own origin, y upwards)

#(define heads-port (open-output-file (getenv "HEADS_FILE")))
#(define grob-count 0)
#(define score-count 0)

#(define (quarters moment) (* 4 (exact->inexact (ly:moment-main moment))))

#(define (write-row . values)
   (display (string-join (map (lambda (value) (format #f "~a" value)) values) "\t") heads-port)
   (newline heads-port)
   (force-output heads-port))

#(define (mean-count count) (if (pair? count) (/ (+ (car count) (cdr count)) 2) count))

#(define (Head_recorder context)
   (let ((score score-count) (number-of (make-hash-table)) (heads '()) (ties '()))
     (define (name-grob! grob prefix)
       (set! grob-count (1+ grob-count))
       (ly:grob-set-property! grob 'output-attributes
        (list (cons 'id (format #f "~a~a" prefix grob-count))))
       (hashq-set! number-of grob grob-count)
       grob-count)
     (define (write-box grob)
       (let ((x (ly:grob-extent grob grob X)) (y (ly:grob-extent grob grob Y)))
         (if (and (< (car x) (cdr x)) (< (car y) (cdr y)))
             (write-row "box" score (hashq-ref number-of grob) (car x) (cdr x) (car y) (cdr y)))))
     (define (write-tie tie)
       (let ((left (hashq-ref number-of (ly:spanner-bound tie LEFT)))
             (right (hashq-ref number-of (ly:spanner-bound tie RIGHT))))
         (if (and left right) (write-row "tie" score left right))))
     (set! score-count (1+ score-count))
     (make-engraver
      (listeners
       ((tempo-change-event engraver event)
        (let ((count (ly:event-property event 'metronome-count))
              (unit (ly:event-property event 'tempo-unit)))
          (if (and (ly:duration? unit) (or (number? count) (pair? count)))
              (write-row "tempo" score (quarters (ly:context-current-moment context))
               (exact->inexact (* (mean-count count) (quarters (ly:duration-length unit)))))))))
      (acknowledgers
       ((note-head-interface engraver grob source)
        (let* ((event (event-cause grob))
               (pitch (and event (ly:event-property event 'pitch)))
               (moment (ly:context-current-moment context))
               (staff (ly:context-find (ly:translator-context source) 'Staff)))
          (if (ly:pitch? pitch)
              (begin
                (write-row "head" score (name-grob! grob "head") (quarters moment)
                 (exact->inexact (ly:moment-grace moment))
                 (quarters (ly:event-length event))
                 (+ 60 (ly:pitch-semitones pitch))
                 (if staff (object-address staff) 0))
                (set! heads (cons grob heads))))))
       ((staff-symbol-interface engraver grob source) (name-grob! grob (format #f "staff~a-" score)))
       ((tie-interface engraver grob source) (set! ties (cons grob ties))))
      ((finalize engraver)
       (for-each write-box heads)
       (for-each write-tie ties)))))

#(define (name-bar-line grob)
   (let ((glyph (ly:grob-property grob 'glyph-name)))
     (if (string? glyph)
         (ly:grob-set-property! grob 'output-attributes (list (cons 'id (format #f "bar ~a" glyph)))))))

#(define (name-bracket grob)
   (let ((text (markup->string (ly:grob-property grob 'text))))
     (ly:grob-set-property! grob 'output-attributes (list (cons 'id (format #f "volta ~a" text))))))

\layout {
  \context {
    \Score
    \consists #Head_recorder
    \override BarLine.after-line-breaking = #name-bar-line
    \override VoltaBracket.after-line-breaking = #name-bracket
  }
}
